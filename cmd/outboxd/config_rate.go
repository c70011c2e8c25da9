package main

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// rate is how many sends may start, as the file says it: a whole number of them a second, minute or hour.
type rate string

func (rate) wants() string {
	return "sends a second, minute or hour, such as 50/s, 600/m or 1000/h"
}

// perSecond reads it. What is no rate is no limit: 0.
func (r rate) perSecond() (float64, error) {
	number, unit, _ := strings.Cut(string(r), "/")
	sends, err := strconv.Atoi(number)
	every := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}[unit]
	if err != nil || every == 0 || sends < 1 || sends > 1_000_000 {
		return 0, errors.New("wants " + r.wants())
	}
	return float64(sends) / every.Seconds(), nil
}
