package dialect

import (
	"math"
	"time"
)

// FromMicros reads a duration: they travel as microseconds, in both directions. The longest that Go knows is 292 years, and
// a table that came from elsewhere may hold dates of the year 1.
func FromMicros(us int64) time.Duration {
	const longest = math.MaxInt64 / int64(time.Microsecond)
	return time.Duration(min(max(us, -longest), longest)) * time.Microsecond
}
