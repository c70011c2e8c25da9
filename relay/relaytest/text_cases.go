package relaytest

import (
	"strings"

	"github.com/outboxd/outboxd/relay"
)

func textCases() []storeCase {
	var cases []storeCase
	for name, text := range map[string]string{
		"NUL":              "a\x00b",
		"invalid UTF-8":    "a\xff\xfe\xc3(b",
		"a cut rune":       "ab\xf0\x9f\x98",
		"emoji":            strings.Repeat("😀", 1000),
		"a megabyte":       strings.Repeat("0123456789abcdef", 1<<16),
		"quotes":           `'";--\ $1 %s ? {a,b} NULL`,
		"NULL":             "NULL",
		"control":          "a\x01\x1b[31m\r\n\tb\u2028\u202e",
		"blanks":           "  a  ",
		"a lone surrogate": "a\xed\xa0\x80b",
	} {
		cases = append(cases, storeCase{name, func(s *suite) { s.writes(text) }})
	}
	return cases
}

// writes demands that an outcome with this text in every place is written, and beside it a plain one.
func (s *suite) writes(text string) {
	s.Insert(repeat(4, Seed{Type: orders})...)
	claims := s.claim(ofOrders)
	outcomes := []relay.Outcome{
		{Kind: relay.KindDone, Result: text, Answer: text},
		{Kind: relay.KindRetry, Class: text, Err: text, Answer: text},
		{Kind: relay.KindFail, Reason: relay.Reason(text), Class: text, Err: text},
		relay.Done("plain"),
	}
	settlements := make([]relay.Settlement, len(claims))
	for i, c := range claims {
		settlements[i] = relay.Decide(relay.Try{Claim: c, Outcome: outcomes[i], Policy: relay.Policy{Budget: 2, Base: long, Cap: long}})
	}
	s.settle(settlements...)
	for _, settlement := range settlements {
		s.wrote(settlement.Row())
	}
}

// wrote demands that the texts of a settlement are in the message and its attempt to the letter; but blanks at the end of a
// result, which an engine may fill the column with, count for nothing.
func (s *suite) wrote(want relay.Row) {
	s.Helper()
	r := s.row(want.ID)
	for _, text := range [][3]string{
		{"result", strings.TrimRight(r.Result, " "), strings.TrimRight(want.Result, " ")},
		{"error_class", r.ErrorClass, want.ErrorClass},
		{"last_error", r.LastError, want.LastError},
		{"state", string(r.State), string(want.State)},
	} {
		if text[1] != text[2] {
			s.Errorf("%s of a %s is %q, want %q", text[0], want.What, text[1], text[2])
		}
	}
	for _, a := range s.Attempts(want.ID) {
		if a.Answer != want.Answer || a.ErrorClass != want.ErrorClass || a.Error != want.LastError {
			s.Errorf("the attempt of a %s is %+v, want the texts of %+v", want.What, a, want)
		}
	}
}
