// The measured rates and lost keys of npm's filters, as measure.py has them: called by run.sh, in a
// folder that has them. Prints a table.

const KEYS = 100000
// The requested rates, and how many absent keys are looked up.
const RATES = [[0.01, 200000], [1e-4, 1000000]]
const TEXTS = [String, i => 'user:' + String(i).padStart(7, '0')]

const {createRequire} = require('module')
const load = createRequire(process.cwd() + '/')
const {BloomFilter, CuckooFilter} = load('bloom-filters')

// Package, type, how it is made: `add` returns false if it refuses a key.
const ROWS = [
    ['bloom-filters', 'BloomFilter', rate => {
        const f = BloomFilter.create(KEYS, rate)
        return [key => f.add(key), key => f.has(key)]
    }],
    ['bloom-filters', 'CuckooFilter', rate => {
        const f = CuckooFilter.create(KEYS, rate)
        return [key => f.add(key), key => f.has(key)]
    }],
    ['bloomfilter', 'BloomFilter', rate => {
        const f = load('bloomfilter').BloomFilter.withTargetError(KEYS, rate)
        return [key => f.add(key), key => f.test(key)]
    }],
    ['bloem', 'SafeBloem', rate => {
        const f = new (load('bloem').SafeBloem)(KEYS, rate)
        return [key => f.add(Buffer.from(key)), key => f.has(Buffer.from(key))]
    }],
    ['@mcrowe/minibloom', 'optimalFilter', rate => {
        const f = load('@mcrowe/minibloom').optimalFilter(KEYS, rate)
        return [key => f.add(key), key => f.test(key)]
    }],
    ['@duckduckgo/jsbloom', 'filter', rate => {
        const f = load('@duckduckgo/jsbloom').filter(KEYS, rate)
        // Its false says that the key seems to be there.
        return [key => void f.addEntry(key), key => f.checkEntry(key)]
    }],
]

console.log('| package | type | 1% | 1e-4 | lost of 100,000 | refused |\n|---|---|--:|--:|--:|--:|')
for (const [name, type, make] of ROWS) {
    const version = JSON.parse(require('fs').readFileSync(`node_modules/${name}/package.json`)).version
    let [lost, refused, cells] = [0, 0, []]
    for (const [rate, absent] of RATES) {
        const ratios = TEXTS.map(text => {
            const [add, contains] = make(rate)
            const accepted = []
            for (let i = 0; i < KEYS; i++) {
                if (add(text(i)) === false) refused++
                else accepted.push(i)
            }
            for (const i of accepted) if (!contains(text(i))) lost++
            let found = 0
            for (let i = KEYS; i < KEYS + absent; i++) if (contains(text(i))) found++
            return (found / absent / rate).toFixed(2)
        })
        cells.push(ratios.join(', '))
    }
    const mean = [lost, refused].map(all => (all / RATES.length / TEXTS.length).toFixed(0))
    console.log(`| ${name} ${version} | \`${type}\` | ${cells.concat(mean).join(' | ')} |`)
}
