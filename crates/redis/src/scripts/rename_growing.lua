-- After cursor.lua. KEYS[3], KEYS[4]: the new cursor, and the beginning of the bitmaps' new names.
-- Answers how many bitmaps were there. What was there under the new names is gone.
local function rename(old, new)
    if redis.call('EXISTS', old) == 1 then
        redis.call('RENAME', old, new)
        return 1
    end
    redis.call('UNLINK', new)
    return 0
end

local replaced = tonumber(redis.call('GET', KEYS[3]) or '0') or 0
for bitmap = cursor + 1, math.min(replaced, greatest) do
    redis.call('UNLINK', KEYS[4] .. '-' .. bitmap)
end
local renamed = 0
for bitmap = 0, cursor do
    renamed = renamed + rename(name(bitmap), KEYS[4] .. '-' .. bitmap)
end
rename(KEYS[1], KEYS[3])
return renamed
