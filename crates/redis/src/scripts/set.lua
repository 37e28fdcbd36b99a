-- KEYS: the bitmap. ARGV: the number of bits of a key, then the offsets of every key. Answers for each key 1 if a bit of it was not set.
local functions = tonumber(ARGV[1])
local answers = {}
for first = 2, #ARGV, functions do
    local changed = 0
    for i = first, first + functions - 1 do
        if redis.call('SETBIT', KEYS[1], ARGV[i], 1) == 0 then
            changed = 1
        end
    end
    answers[#answers + 1] = changed
end
return answers
