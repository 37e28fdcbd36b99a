-- After cursor.lua. ARGV[2]: the number of bits of a key, the number of bits of a bitmap, the milliseconds until all keys expire (0: never),
-- then the offsets of every key. Answers for each key 1 if a bit of it was not set.
local functions, size = tonumber(ARGV[2]), tonumber(ARGV[3])

-- The milliseconds until all keys expire. Those that come later expire with them.
local left = ARGV[4]
local sets_time = left ~= '0'
if not sets_time then
    left = math.max(redis.call('PTTL', KEYS[1]), redis.call('PTTL', name(0)))
end

-- A bitmap has its whole length from the beginning.
local current = name(cursor)
if redis.call('EXISTS', current) == 0 then
    redis.call('SETBIT', current, size - 1, 0)
    sets_time = sets_time or left > 0
end
-- Counted once; then every bit that is set adds one.
local ones = redis.call('BITCOUNT', current)
local answers = {}
for first = 5, #ARGV, functions do
    local changed = 0
    if not holds_one_of(cursor - 1, first, functions) then
        for i = first, first + functions - 1 do
            if redis.call('SETBIT', current, ARGV[i], 1) == 0 then
                changed = 1
                ones = ones + 1
            end
        end
    end
    answers[#answers + 1] = changed
    if ones * 2 > size and cursor < greatest then
        cursor = redis.call('INCR', KEYS[1])
        current = name(cursor)
        redis.call('SETBIT', current, size - 1, 0)
        ones = redis.call('BITCOUNT', current)
        sets_time = sets_time or left > 0
    end
end

if sets_time then
    for bitmap = 0, cursor do
        redis.call('PEXPIRE', name(bitmap), left)
    end
    -- Last, so that no bitmap outlasts it.
    redis.call('PEXPIRE', KEYS[1], left)
end
return answers
