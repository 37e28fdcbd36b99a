-- KEYS: the bitmap. ARGV: the number of bits of a key, then the offsets of every key. Answers 1 or 0 for each key.
local functions = tonumber(ARGV[1])
local answers = {}
for first = 2, #ARGV, functions do
    local all = 1
    for i = first, first + functions - 1 do
        if redis.call('GETBIT', KEYS[1], ARGV[i]) == 0 then
            all = 0
            break
        end
    end
    answers[#answers + 1] = all
end
return answers
