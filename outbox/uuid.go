package outbox

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"regexp"
	"time"
)

// idSource makes time-ordered UUIDs (RFC 9562, version 7), each above the one before, also when the clock goes back. It
// serves one call and one goroutine.
type idSource struct {
	now    func() time.Time
	millis int64  // of the last id
	high   uint64 // its 12 bits after the version
	low    uint64 // its 62 bits after the variant
}

// next returns a UUID in canonical lower-case form. Within a millisecond it adds a random step of at most 2^32 to the low
// bits (RFC 9562, section 6.2, method 2): high starts below half of its range, so it takes 2^41 ids to run over.
func (s *idSource) next() string {
	var random [16]byte
	rand.Read(random[:]) // crypto/rand.Read never returns an error
	a, b := binary.BigEndian.Uint64(random[:8]), binary.BigEndian.Uint64(random[8:])
	if millis := s.now().UnixMilli(); millis > s.millis {
		s.millis, s.high, s.low = millis, a&0x7ff, b&(1<<62-1)
	} else {
		s.low += 1 + b>>32
		s.high += s.low >> 62
		s.low &= 1<<62 - 1
	}
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], uint64(s.millis)<<16|0x7000|s.high)
	binary.BigEndian.PutUint64(id[8:], 1<<63|s.low)
	return canonical(id)
}

func canonical(id [16]byte) string {
	h := hex.EncodeToString(id[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// notUUID is what parseUUID says of a text in another form.
const notUUID = "not a UUID in the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"

// parseUUID returns the canonical lower-case form of s, and what is wrong with it. Of the ways to write a UUID it takes
// the hyphenated one only, in either case: ids are compared as text on some databases.
func parseUUID(s string) (id, problem string) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return "", notUUID
	}
	raw, err := hex.DecodeString(s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:])
	if err != nil {
		return "", notUUID
	}
	if id := [16]byte(raw); id != [16]byte{} {
		return canonical(id), ""
	}
	return "", "all zeros: it was never set"
}

var plainID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,36}$`)

// parseID is parseUUID for databases where an id is a text: it takes others than UUIDs too, and keeps them as they are.
func parseID(s string) (id, problem string) {
	id, problem = parseUUID(s)
	switch {
	case problem != notUUID:
		return id, problem
	case !plainID.MatchString(s):
		return "", "want 1 to 36 of A-Z, a-z, 0-9, _ and -"
	}
	return s, ""
}
