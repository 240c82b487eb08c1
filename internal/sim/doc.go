// Package sim runs the daemon's real logic (packages engine, hostslots, leftover, robots, protocol)
// under virtual time and a seed. It simulates the doc index, name servers, web servers, spiders and
// an operator, and makes each of them fail now and then. It simulates a day of crawling in less
// than a minute.
//
// An oracle that shares no code with the engine checks what the engine receives and emits: lines to
// spiders, requests for robots.txt, statuses, look-ups, outcomes. It reports the first violation of
// a rule of politeness, or of the scopes of crawls, which it judges by itself, too. A run depends
// only on its Scenario, so the seed in a failure's text repeats the failure. A Witness applies the
// same oracle to a daemon that runs in real time.
//
//	go test ./internal/sim -run 'TestDay|TestMillion' -v -args -seed 7  # full size, this seed
//	go test ./internal/sim -run TestAccidents -v -args -seed 7          # twenty days of accidents, seeds 7 to 26
//	go test ./internal/sim -run TestScenarios/collide -v -args -seed 7  # ten small ones from this seed on
//	go test -tags faults ./internal/sim -run Mutations -v # the oracle's complaints of rules broken on purpose
package sim
