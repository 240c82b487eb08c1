// Package engine decides what the daemon does: which documents to take, to send and to end. It does
// no I/O. Events go in as method calls, and work for others comes out in Engine.Out. The owner
// goroutine of package urlserver and the simulation drive the same code.
//
// # Components
//
// An Engine consists of components, each with the state of one job:
//
//   - intake asks the doc index for candidates and takes its answers.
//   - dns looks names up, and again when they fail for now or when an address has expired.
//   - hostRules applies the operator's rules to hosts.
//   - robotsFetches fetches, keeps and applies robots.txt.
//   - spiders has the connections, the spider pools, the documents that are suspects, and those that
//     spiders gave back.
//   - outcomes has the documents that are to end or to go back to the index, and remembers those that
//     have ended.
//   - leases acquires, extends and releases the leases of host groups, asks for bindings, and
//     reports how many documents are held.
//   - tracer follows sampled documents.
//
// Package hostslots has the documents, their pace and their transactions. A component's methods
// touch only its own fields. A change that concerns several components is a method of Engine.
//
// # The run loop
//
// The owner calls Advance, then the methods for the events that have happened, then Step, and then
// does what is in Out. Step says when it is due again if no event comes before. Each event and each
// step does a bounded amount of work: at most stepBudget documents, intakeStep candidates, and
// ruleStep hosts under changed rules. Walks over all hosts, slots or transactions are made of calls
// that each look at a bounded number, so that nothing holds up sending for long.
//
// # The way of a document
//
// 1. Step puts a request into Out.Ask. Its answer is parsed by Prepared.Prepare, and comes back by
// Answered. 2. The next steps take the candidates. A new one is offered to the slots; its host is
// resolved (Out.Lookups, Resolved), bound to a group and, where daemons share a reservation, leased
// (Out.Leases, LeasesAnswered). 3. When the slots select the document, the engine checks the rules,
// the address and robots.txt (Out.Fetches, Fetched), and sends it to a spider (Out.Dirty, Output,
// Written). 4. The spider's status comes by Lines. When the spider is lost, the document is queued
// again, or ends when its attempts are used up. 5. The outcome goes to Out.Outcomes, or the
// document goes back to the index by Out.Returns.
//
// An Engine is not safe for concurrent use: one goroutine owns it.
package engine
