-- What a script of many calls ends with: prefix, how many arguments a call has, those of one call after the other
-- -> OK, then what each answers. Each gets the place of its first one.
local answers = { OK }
for i = 3, #ARGV, tonumber(ARGV[2]) do
  local answer, broken = guarded(ARGV[i], each, i)
  answers[#answers + 1] = answer or broken
end
return answers
