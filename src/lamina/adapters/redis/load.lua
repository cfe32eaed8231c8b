-- ARGV: tenant, '1' with vectors, ids.

local found = {}
for number = 3, #ARGV do
  found[#found + 1] = fetched(ARGV[number], ARGV[2] == '1')
end
return found
