"""The other end of tests/servers/redis_peers.rs: the package scrapy-redis-bloomfilter itself, on the server at this port.

Each line of the standard input is a JSON array: "insert" or "exists", the filter's key, BIT, the number of hash functions, the values.
The answer is a line: an array with one number for each value, null for those of "insert".
Needs the package (without what it depends on, which is Scrapy) and the package redis.
"""

import importlib.util
import json
import sys
import types

import redis

# Loads only the package's file with the filter: the other files import Scrapy.
found = importlib.util.find_spec("scrapy_redis_bloomfilter")
if found is None:
    sys.exit("there is no package scrapy_redis_bloomfilter")
package = types.ModuleType("scrapy_redis_bloomfilter")
package.__path__ = list(found.submodule_search_locations)
sys.modules["scrapy_redis_bloomfilter"] = package
sys.modules["scrapy_redis"] = types.ModuleType("scrapy_redis")
sys.modules["scrapy_redis.defaults"] = types.ModuleType("scrapy_redis.defaults")

from scrapy_redis_bloomfilter.bloomfilter import BloomFilter  # noqa: E402

print("ready", flush=True)
server = redis.Redis(host="127.0.0.1", port=int(sys.argv[1]))
for line in sys.stdin:
    what, key, bit, hash_number, values = json.loads(line)
    call = getattr(BloomFilter(server, key, bit, hash_number), what)
    answers = [call(value) for value in values]
    print(json.dumps([None if answer is None else int(answer) for answer in answers]), flush=True)
