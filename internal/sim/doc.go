// Package sim runs the daemon's real logic (packages engine, hostslots, leftover, robots, protocol) under virtual
// time and a seed, against a world made of events: a doc index, name servers, web servers, spiders and an operator,
// each with its troubles. A day of crawling takes less than a minute.
//
// An oracle that knows nothing of the code under test watches from outside: the lines sent to spiders, the requests
// for robots.txt, the statuses delivered, the outcomes. It states the rules of the slots in its own words and
// complains of the first breach. A run is a function of its Scenario: the seed that a failure names repeats it.
// A Witness has the same oracle judge a daemon that runs in real time.
//
//	go test ./internal/sim -run 'TestDay|TestMillion' -v -args -seed 7  # full size, this seed
//	go test ./internal/sim -run TestAccidents -v -args -seed 7          # twenty days of accidents, seeds 7 to 26
//	go test ./internal/sim -run TestScenarios/collide -v -args -seed 7  # ten small ones from this seed on
//	go test -tags faults ./internal/sim -run OracleBites -v             # the oracle's complaints of rules broken on purpose
package sim
