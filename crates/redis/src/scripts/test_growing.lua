-- After cursor.lua. ARGV[2]: the number of bits of a key, then the offsets of every key. Answers 1 or 0 for each key.
local functions = tonumber(ARGV[2])
local answers = {}
for first = 3, #ARGV, functions do
    answers[#answers + 1] = holds_one_of(cursor, first, functions) and 1 or 0
end
return answers
