-- After cursor.lua. ARGV[2]: the milliseconds until all keys expire. Answers the number of keys that will.
local expiring = 0
for bitmap = 0, cursor do
    expiring = expiring + redis.call('PEXPIRE', name(bitmap), ARGV[2])
end
-- Last, so that no bitmap outlasts it.
return expiring + redis.call('PEXPIRE', KEYS[1], ARGV[2])
