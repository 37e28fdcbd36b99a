-- KEYS: the bitmap, the configuration. ARGV: its fields and their values. Answers 0 if there is a
-- configuration, and -1 if there is a bitmap without one.
if redis.call('EXISTS', KEYS[2]) == 1 then
    return 0
end
if redis.call('EXISTS', KEYS[1]) == 1 then
    return -1
end
redis.call('HSET', KEYS[2], unpack(ARGV))
return 1
