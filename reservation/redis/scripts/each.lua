-- The end of each script that makes many calls: prefix, number of arguments of a call, the arguments of all calls
-- -> OK, then the answer to each call. The function of a call gets the index of its first argument.
local answers = { OK }
for i = 3, #ARGV, tonumber(ARGV[2]) do
  local answer, broken = guarded(ARGV[i], each, i)
  answers[#answers + 1] = answer or broken
end
return answers
