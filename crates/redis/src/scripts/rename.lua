-- KEYS: in pairs, the old name and the new one. Answers how many of the old ones were there. What
-- was there under a new name is gone.
local renamed = 0
for i = 1, #KEYS, 2 do
    if redis.call('EXISTS', KEYS[i]) == 1 then
        redis.call('RENAME', KEYS[i], KEYS[i + 1])
        renamed = renamed + 1
    else
        redis.call('UNLINK', KEYS[i + 1])
    end
end
return renamed
