"""Runs the README's examples as they stand there."""

import http.server
import io
import json
import os
import pathlib
import subprocess
import sys
import threading

import pytest

ROOT = pathlib.Path(os.environ.get("LANEBLOOM_ROOT") or pathlib.Path(__file__).parents[3])
README = (ROOT / "integrations/python/README.md").read_text()


def recipes():
    """Heading -> the examples below it."""
    heading, found, code = "", {}, None
    for line in README.splitlines(keepends=True):
        if line.startswith("```"):
            if code is None:
                code = []
            else:
                found.setdefault(heading, []).append("".join(code))
                code = None
        elif code is not None:
            code.append(line)
        elif line.startswith("#"):
            heading = line.strip("# \n")
    return found


def recipe(word):
    """The example below the heading that contains the word."""
    (blocks,) = [blocks for heading, blocks in recipes().items() if word in heading]
    (block,) = blocks
    return block


def run(word):
    names = {"__name__": "recipe"}
    exec(compile(recipe(word), f"README, {word}", "exec"), names)
    return names


def test_every_example_is_one_of_these():
    # The recipes of Spark are in test_spark.py.
    assert README.count("```python") == 13


def test_the_first_example():
    pytest.importorskip("numpy")
    assert run("for Python")["seen"].approx_len > 990


def test_row_groups_by_the_filters_of_a_parquet_file(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    pytest.importorskip("polars")
    monkeypatch.chdir(tmp_path)
    names = run("filters of a Parquet file")
    assert names["group"] == 1


def test_a_crawl_of_scrapy_asks_for_each_page_once(tmp_path):
    pytest.importorskip("scrapy")
    asked = []

    class Site(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            links = "".join(f'<a href="/page{i}">{i}</a>' for i in range(10)) if "page" in self.path or self.path == "/" else ""
            body = f"<html>{links}</html>".encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    (tmp_path / "dupefilter.py").write_text(recipe("Scrapy"))
    (tmp_path / "crawl.py").write_text(
        """
import sys, scrapy
from scrapy.crawler import CrawlerProcess

class Spider(scrapy.Spider):
    name = "spider"
    start_urls = [sys.argv[1]]

    def parse(self, response):
        for link in response.css("a::attr(href)"):
            yield response.follow(link, self.parse)

process = CrawlerProcess({
    "DUPEFILTER_CLASS": "dupefilter.LanebloomDupeFilter", "JOBDIR": "job", "LOG_LEVEL": "ERROR",
    "ROBOTSTXT_OBEY": False, "TELNETCONSOLE_ENABLED": False,
})
process.crawl(Spider)
process.start()
"""
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        crawl = [sys.executable, "crawl.py", f"http://127.0.0.1:{server.server_port}/"]
        pages = ["/"] + [f"/page{i}" for i in range(10)]
        for expected in (pages, ["/"]):
            asked.clear()
            result = subprocess.run(crawl, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
            assert result.returncode == 0 and b"Traceback" not in result.stdout, result.stdout.decode()
            # The second crawl goes on from the file: the start is asked for anew, as scrapy does.
            assert sorted(asked) == sorted(expected)
        server.shutdown()
    assert (tmp_path / "job" / "requests.lanebloom").stat().st_size > 1000


def test_frames_without_duplicates():
    pytest.importorskip("polars"), pytest.importorskip("pandas")
    run("polars or pandas")


def test_files_that_may_have_a_key():
    pytest.importorskip("pandas")
    assert len(run("Files that may have a key")["bank"]) == 1000


def test_a_parquet_file_by_batches(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"id": [1, 2, 1, 3] * 1000, "n": range(4000)}), "events.parquet", row_group_size=3)
    run("Parquet file by batches")
    assert pq.read_table("unique.parquet").to_pydict() == {"id": [1, 2, 3], "n": [0, 1, 3]}


def test_tasks_run_once():
    assert run("run once")["mails"] == [17, 17]


def test_documents_in_json_lines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = ["Ein Text", "ein  text\n", "ein anderer"]
    pathlib.Path("documents.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    run("JSON lines")
    assert pathlib.Path("unique.jsonl").read_text().count("\n") == 2


def test_a_token_is_taken_once():
    def app(environ, start_response):
        start_response("200 OK", [])
        return [b"fine"]

    guarded = run("web application")["OneTimeTokens"](app)

    def status(**headers):
        seen = []
        environ = {"wsgi.input": io.BytesIO(), **{f"HTTP_{name}": value for name, value in headers.items()}}
        guarded(environ, lambda status, headers: seen.append(status))
        return seen[0][:3]

    assert [status(X_TOKEN="a"), status(X_TOKEN="b"), status(X_TOKEN="a")] == ["200", "200", "409"]
    assert status() == status() == "200"


def test_dask_makes_a_filter_by_all_workers():
    pytest.importorskip("dask.bag")
    import dask

    with dask.config.set(scheduler="threads"):
        names = run("Dask")
    assert names["seen"].compute().approx_len in range(1990, 2011)


def test_ray_makes_a_filter_by_all_workers():
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        names = run("Ray")
        assert ray.get(names["seen"]).approx_len in range(1990, 2011)
    finally:
        ray.shutdown()
