-- ARGV: tenant, the instant in microseconds, places. How many are there that are not expired at the instant.

if is_behind() then return false end

local keys, total = {}, 0
for number = 3, #ARGV do
  local key = prefix .. 's:' .. tenant .. ':' .. ARGV[number]
  keys[#keys + 1] = key
  total = total + redis.call('ZCARD', key)
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', prefix .. 'x:' .. tenant, '-inf', ARGV[2])) do
  for _, key in ipairs(keys) do
    if redis.call('ZSCORE', key, id) then
      total = total - 1
      break
    end
  end
end
return total
