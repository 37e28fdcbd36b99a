-- After configured.lua, before an insert. The bitmap expires with its configuration. The first insert
-- after `expire` makes the bitmap, and another client may have made it without a time.
local left = redis.call('PTTL', KEYS[2])
if left > 0 and redis.call('PTTL', KEYS[1]) < 0 then
    redis.call('SETBIT', KEYS[1], 0, redis.call('GETBIT', KEYS[1], 0))
    redis.call('PEXPIRE', KEYS[1], left)
    -- Not before the bitmap.
    redis.call('PEXPIRE', KEYS[2], left)
end
