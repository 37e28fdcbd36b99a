-- After cursor.lua. ARGV[2]: the milliseconds until all keys expire. Answers the number of bitmaps that will.
redis.call('PEXPIRE', KEYS[1], ARGV[2])
local expiring = 0
for bitmap = 0, cursor do
    expiring = expiring + redis.call('PEXPIRE', name(bitmap), ARGV[2])
end
return expiring
