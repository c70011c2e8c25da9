package main

import "github.com/outboxd/outboxd/relay"

// The closed sets that labels are taken from beside what the configuration names.

func outcomes() []relay.Kind {
	return []relay.Kind{relay.KindDone, relay.KindRetry, relay.KindFail, relay.KindUnknown, relay.KindUnsent}
}

func reasons() []relay.Reason {
	return append(unresolvable(), relay.Expired, relay.Cancelled)
}

// unresolvable are the reasons of messages that wait for a person; those of others are resolved at once.
func unresolvable() []relay.Reason {
	return []relay.Reason{relay.Exhausted, relay.Rejected, relay.TooLarge, relay.LeaseLost, relay.Unknowable}
}

// errorClasses are the codes that a send can have which was not done.
func errorClasses() []string {
	return []string{
		"timeout", "refused", "dns", "tls", "reset", "http_3xx", "http_4xx", "http_5xx", "throttled", "auth", "not_found",
		"too_large", "unroutable", "broker", "program", "invalid", other,
	}
}

// causes are why admit turns a message back.
func causes() []string { return []string{relay.ClassPaused, relay.ClassNoPolicy, relay.CauseVersion} }

// states are those of a destination.
func states() []string { return []string{"ok", "ramp", "open", "throttled", "standby", "paused"} }

func ops() []relay.Op {
	return []relay.Op{
		relay.OpReplay, relay.OpCorrect, relay.OpRetryNow, relay.OpCancel, relay.OpResolve, relay.OpPause, relay.OpResume,
		relay.OpDrill, relay.OpPurge, relay.OpInstance,
	}
}

// results are what becomes of an operation.
func results() []string {
	return []string{relay.ResultApplied, relay.ResultDryRun, relay.ResultRefused}
}
