// Package relaytest has what tests of the relay and of its Stores share: Memory, a Store without a database; TestStore,
// which every Store must pass; Faulty, a Database that fails when told; and Sink, a destination that answers as told.
//
// Start with Backend: it says what a test needs from a database beside its Store. TestStore's cases are in the files
// named ..._cases.go, one for each step of a message's life.
package relaytest
