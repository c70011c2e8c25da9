package relay

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
