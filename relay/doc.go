// Package relay walks messages of an outbox table through their life: pending → in_flight → done or failed.
//
// The path of one message, each step in the file that is named:
//
//	claim    claim.go     due messages, a quota for each routing key, under a lease; ids and counters, no payload
//	load     flight.go    payloads, as many bytes as the destination may hold
//	admit    decide.go    not past its window, not lapsed too often, not expired, accepted by a policy
//	send     flight.go    one try of a Sink, no transaction open, under the lease and the policy's time-out
//	decide   decide.go    what the outcome costs: a pure function, the table of the design
//	settle   settle.go    written back in batches, guarded by id, lease and state
//
// Start reading with Run in relay.go, then fly and carry in flight.go, then decide.go. Around that path: lease.go and
// keep.go hold and renew leases, reclaim.go takes back what dead relays left, breaker.go and destination.go keep a
// destination that is away from costing messages their budget, share.go and peers.go divide what a destination takes
// among the relays that are alive, single.go looks for what is claimed alone, route.go knows the routing keys, reload.go
// puts another configuration in force. What operators ask for is decided in judge.go and applied by operate.go and
// steer.go. What one relay does for all, figures.go and retention.go, is a duty.go, as is a seat.go among those that may
// work; instance.go asks whose outbox it is. The seams are store.go, implemented in package dialect, and sink.go,
// implemented in relay/sink. DESIGN.md beside this file says why, and lists all loops and files.
package relay
