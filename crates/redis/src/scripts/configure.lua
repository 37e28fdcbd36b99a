-- KEYS: the configuration. ARGV: its fields and their values. Answers 0 if there is one.
if redis.call('EXISTS', KEYS[1]) == 1 then
    return 0
end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1
