package relay

import "time"

// backoff is how long a message waits after its n-th charged send: base doubled n-1 times, at most limit, of which 50 to
// 100 % by draw, a random number in [0, 1). n, base and limit are 1 or more. The exponent is clamped before it multiplies:
// a Go shift of a second by 40 is negative, and by 62 zero.
func backoff(n int, base, limit time.Duration, draw float64) time.Duration {
	delay := min(base, limit)
	for ; n > 1 && delay < limit; n-- {
		if delay > limit/2 {
			delay = limit
			break
		}
		delay *= 2
	}
	return delay - time.Duration(draw*float64(delay/2))
}

// tenth is how long a message waits that nothing was sent of: a tenth of its age, so that old ones ask seldom, within
// 1 s and limit.
func tenth(age, limit time.Duration) time.Duration {
	return min(max(age/10, time.Second), limit)
}
