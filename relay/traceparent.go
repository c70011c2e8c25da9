package relay

// TraceContext is what a destination gets of a trace: the headers of W3C Trace Context.
type TraceContext struct{ Traceparent, Tracestate string }

// Hop is the traceparent that goes with this send: that of the relay's own span where there is one, else the row's as it is.
// It is "" where neither is valid.
func (m *Message) Hop() string {
	hop := m.Traceparent
	if m.Trace != nil {
		hop = m.Trace.Traceparent
	}
	if !IsTraceparent(hop) {
		return ""
	}
	return hop
}

// Tracestate is what goes with Hop in place of the row's header of that name. own is false where the row's goes, as it is.
func (m *Message) Tracestate() (value string, own bool) {
	if m.Trace == nil {
		return "", false
	}
	return m.Trace.Tracestate, true
}

// IsTraceparent tells whether s is a traceparent of version 00: two ids in lower-case hexadecimal that are not all zero,
// and flags (W3C Trace Context).
func IsTraceparent(s string) bool {
	const zeros = "00000000000000000000000000000000"
	if len(s) != 55 || s[:3] != "00-" || s[35] != '-' || s[52] != '-' {
		return false
	}
	trace, span, flags := s[3:35], s[36:52], s[53:]
	return isHex(trace) && isHex(span) && isHex(flags) && trace != zeros && span != zeros[:16]
}

func isHex(s string) bool {
	for i := range len(s) {
		if (s[i] < '0' || s[i] > '9') && (s[i] < 'a' || s[i] > 'f') {
			return false
		}
	}
	return true
}
