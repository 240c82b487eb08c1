// Package sim runs the daemon's real logic (packages engine, hostslots, leftover, robots, protocol)
// under virtual time and a seed, against a world made of events: a doc index, name servers, web
// servers, spiders and an operator, each with its troubles. A day of crawling takes less than a
// minute.
//
// An oracle that shares no code with the engine checks what goes in and out: lines to spiders,
// requests for robots.txt, statuses, look-ups, outcomes. It states the rules in its own words and
// reports the first one that is broken. A run depends on its Scenario alone, so the seed that a
// failure names repeats it. A Witness applies the same oracle to a daemon that runs in real time.
//
//	go test ./internal/sim -run 'TestDay|TestMillion' -v -args -seed 7  # full size, this seed
//	go test ./internal/sim -run TestAccidents -v -args -seed 7          # twenty days of accidents, seeds 7 to 26
//	go test ./internal/sim -run TestScenarios/collide -v -args -seed 7  # ten small ones from this seed on
//	go test -tags faults ./internal/sim -run OracleBites -v # the oracle's complaints of rules broken on purpose
package sim
