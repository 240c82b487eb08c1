// Package hostslots decides which document may be sent to a spider now. It holds every document
// that the daemon has taken from the doc index and not ended, and keeps the politeness of all
// requests: the pace and the open requests of sites, addresses and shared networks. It also has the
// timeouts of transactions.
//
// # The way of a document
//
//   - Slots.Offer puts the document into the queue of its origin, ordered by priority and arrival.
//     If it is for one spider pool it goes into the origin's queue for that pool.
//   - Host.Bind puts the host into a host group by its Place: all hosts with one IP address, all
//     hosts that a rule's group names, or the host alone if it is on a shared network. Without a
//     group the document is unresolved.
//   - A group with documents gets a host slot or waits in the slot queue. The documents of a slot
//     beyond Config.Len, and those of groups without a slot, are leftover. They do not move when
//     there is room for them: a group has its queues whether it has a slot or not.
//   - The hosts of a group with a document that may be sent are its rotation. A host whose site
//     may not be requested yet waits in another heap, by the moment from which the site may be. The
//     group is in the ready heap while it has a slot, a rotation, fewer open requests than allowed
//     and, with Config.Leases, a lease. Its key there is the moment from which a request may be
//     sent to it.
//   - Slots.Next selects the first document of the first host in rotation of the group that has
//     been due longest. The caller sends it (Slots.Send), lets it wait for its robots.txt
//     (Origin.SetRobotsPending) or for a spider (Slots.Suspend), or takes it out
//     (Slots.DequeueSelected).
//   - A sent document is in flight: a transaction in a cell of the slot's active range. Slots.Done
//     ends it. If its spider is gone, or Slots.Overdue finds that it takes too long, Slots.Lost
//     ends it and Slots.Requeue queues the document again.
//   - Slots.End forgets the document.
//
// The daemon's own requests, for robots.txt, wait in queues of their group and are sent before its
// documents. They need no slot, but count for all paces and open requests like documents.
//
// # Two levels
//
// A request leaves only when its site and its address allow it.
//
//   - In the group of an address each host is a site. The group's pace is the address'. The host's
//     record has the pace of its site, which stays with the host when it changes addresses.
//   - The hosts of a rule's group, and a host on a shared network, are a group that is one site.
//     The group's pace is the site's. Above it is the record of the address or of the network
//     (host.above). A host that the address or the network holds back stands in line there.
//     With Config.Leases a request to a host below an address needs two leases. The daemon asks
//     for the lease of the group first, and for that of the address once a host is in line there.
//     All daemons ask in this order, so no two daemons have one of the leases each and wait for
//     the other.
//   - Crawl-delay, backing off, Retry-After and Config.DelayFactor concern the site alone. An
//     address backs off when several of its sites do (failures).
//
// # Components
//
// Slots is a façade over components. A component changes its own fields and its own part of a
// record. A change that concerns several components is a method of Slots. It ends with
// Slots.reschedule, which alone moves a group into and out of the ready heaps and its slot.
//
//	registry    records of documents, origins, hosts and groups; their texts and indexes
//	slotTable   slots, cells of active ranges, transactions and their timeouts
//	pacer       the pace of each site, address and network: gap, backoff, Retry-After, limits
//	dispatch    queues of documents, rotations, ready heaps, own requests, the slot queue
//	leases      which groups want, have or were denied a lease
//	pools       spider pools and their suspended queues
//	crawlCounts documents by crawl, of each host and group
//	moves       hosts that leave their group when no request to them is open
//	unresolved  hosts without a group
//	rejectList  hosts that the doc index is asked to leave out
//	sweeper     hosts and groups that may be forgotten
//
// # Invariants
//
//   - A group is in a ready heap only while a request to it may be sent at the heap's key. Each
//     request sets the group's last request and so moves the key. Before a host is selected its
//     site and what is above its group are checked (Slots.isRequestable). So no order of calls
//     makes a request leave too early, or while as many as allowed are open.
//   - The pace belongs to the site and the address, not to the slot: it stays when the slot changes
//     hands. A host, or a group, that must still wait is not forgotten.
//   - Time 0, the start of the daemon, counts as a request to each site and address.
//   - No name of a transaction is used twice before its cell has had 2^32 transactions.
//   - No call looks at all documents, hosts or groups; what may take long is done in steps by
//     Slots.Tick. After the structures have grown to their working size no call allocates, except
//     those that return new slices or strings.
//
// The package is pure: it has no goroutine, lock, clock, log or I/O. Times are durations since the
// start of the daemon on a monotonic clock, which never goes back.
package hostslots
