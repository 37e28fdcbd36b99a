-- The beginning of the scripts of a growing filter. KEYS: the cursor, the beginning of the bitmaps' names. ARGV[1]: the greatest cursor.
-- A script answers the cursor itself if that is no valid one, and -1 if it is missing although the
-- filter has grown.
local function name(bitmap)
    return KEYS[2] .. '-' .. bitmap
end

local value = redis.call('GET', KEYS[1])
if not value and redis.call('EXISTS', name(1)) == 1 then
    return -1
end
value = value or '0'
local greatest = tonumber(ARGV[1])
local cursor = string.find(value, '^%d+$') and tonumber(value)
if not cursor or cursor > greatest then
    return value
end

-- Whether the key whose offsets are in ARGV from `first` on has all its bits in this bitmap.
local function holds(bitmap, first, functions)
    for i = first, first + functions - 1 do
        if redis.call('GETBIT', name(bitmap), ARGV[i]) == 0 then
            return false
        end
    end
    return true
end

-- Whether one of these bitmaps has all of the key's bits.
local function holds_one_of(last, first, functions)
    for bitmap = last, 0, -1 do
        if holds(bitmap, first, functions) then
            return true
        end
    end
    return false
end

