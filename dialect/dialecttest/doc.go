// Package dialecttest has what every engine must pass beside relaytest.TestStore: what people see of an outbox, the shipped
// audits, and the life of the tables.
//
// Start with Backend: it says what a case needs from an engine. The state that most cases look at is in state.go; SQL that
// is the same everywhere is written once, and Forms has an engine's own words for the rest.
package dialecttest
