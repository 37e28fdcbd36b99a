-- After cursor.lua. ARGV[2]: the number of bits of a bitmap. Answers the number of bitmaps that were there.
local removed = 0
for bitmap = 0, cursor do
    removed = removed + redis.call('UNLINK', name(bitmap))
end
redis.call('SET', KEYS[1], '0')
redis.call('SETBIT', name(0), tonumber(ARGV[2]) - 1, 0)
return removed
