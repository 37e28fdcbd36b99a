-- KEYS: the bitmap. ARGV: the offset of the first chunk, the bytes of a chunk, then the digests of the caller's chunks, one after another:
-- as numbers, the first 13 hexadecimal digits of the SHA-1 of a chunk that is filled up with zeros.
-- Answers the length of the bitmap, then for each chunk that differs its number from 0 and its bytes.
local reply = {redis.call('STRLEN', KEYS[1])}
local at, size = tonumber(ARGV[1]), tonumber(ARGV[2])
for i = 3, #ARGV do
    local chunk = redis.call('GETRANGE', KEYS[1], at, at + size - 1)
    local digest = redis.sha1hex(chunk .. string.rep('\0', size - #chunk))
    if tonumber(string.sub(digest, 1, 13), 16) ~= tonumber(ARGV[i]) then
        reply[#reply + 1] = i - 3
        reply[#reply + 1] = chunk
    end
    at = at + size
end
return reply
