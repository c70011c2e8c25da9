package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The steps of Test, in their order.
const (
	stepSecrets    = "secrets"
	stepAddress    = "address"
	stepConnection = "connection"
	stepTLS        = "tls"
	stepToken      = "token"
	stepOptions    = "options"
)

// Test tries whether the destination can be reached, without sending anything to it that could take effect: secrets,
// address, connection, TLS, token, and a request OPTIONS with the credentials of a send. told hears of each step as it ends;
// after one with an error no other comes. Words and errors are one line without secrets.
func (s *Sink) Test(ctx context.Context, told func(step, words string, err error)) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := errors.Join(s.credentials.check()...); err != nil {
		told(stepSecrets, "", errors.New(strings.ReplaceAll(err.Error(), "\n", "; ")))
		return
	}
	told(stepSecrets, "all can be read", nil)
	if s.reach(ctx, told) {
		s.ask(ctx, told)
	}
}

// reach goes as far as a connection, and tells whether that went well.
func (s *Sink) reach(ctx context.Context, told func(step, words string, err error)) bool {
	address := s.dialled(ctx)
	host, _, _ := net.SplitHostPort(address)
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	told(stepAddress, strings.Join(addresses, ", "), inOneLine(err))
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, s.dialer.timeout)
	defer cancel()
	raw, err := s.dialer.net.DialContext(ctx, "tcp", address)
	if err != nil {
		told(stepConnection, "", inOneLine(err))
		return false
	}
	defer raw.Close()
	told(stepConnection, "to "+raw.RemoteAddr().String(), nil)
	if s.url.Scheme != "https" {
		return true
	}
	secure, err := s.dialer.handshake(ctx, raw, address)
	if err != nil {
		told(stepTLS, "", inOneLine(err))
		return false
	}
	told(stepTLS, tlsWords(secure.ConnectionState()), nil)
	return true
}

// ask gets a token, where one is needed, and makes the OPTIONS request.
func (s *Sink) ask(ctx context.Context, told func(step, words string, err error)) {
	known, header := s.known.clone(), http.Header{headerUserAgent: {s.headers.cfg.UserAgent}}
	step := stepSecrets
	if s.credentials.tokens != nil {
		step = stepToken
	}
	if _, err := s.credentials.prove(ctx, header, known); err != nil {
		told(step, "", errors.New(known.Hide(err.Error())))
		return
	}
	if step == stepToken {
		told(step, "the token server gave one", nil)
	}
	p := &progress{}
	req := (&http.Request{Method: http.MethodOptions, URL: s.url, Header: header}).WithContext(p.watch(ctx))
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		told(stepOptions, "", errors.New(known.Hide(faultRule(err, p).Err)))
		return
	}
	_ = resp.Body.Close()
	words := statusText(resp.StatusCode)
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		told(stepOptions, "", errors.New(words+": it does not take our credentials"))
	default:
		told(stepOptions, words, nil) // many know no OPTIONS: that it answers is enough
	}
}

func inOneLine(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(oneLine(err))
}

// dialled is the host and port that a send connects to, as net/http makes them of the URL: a name in other letters than
// ASCII is looked up in those of RFC 5891.
func (s *Sink) dialled(ctx context.Context) string {
	told := make(chan string, 1)
	tell := func(_ context.Context, _, address string) (net.Conn, error) {
		told <- address
		return nil, net.ErrClosed
	}
	none := &http.Transport{DialContext: tell, DialTLSContext: tell}
	resp, err := none.RoundTrip((&http.Request{Method: http.MethodOptions, URL: s.url, Header: http.Header{}}).WithContext(ctx))
	if err == nil {
		_ = resp.Body.Close() // never: there is no connection
	}
	select {
	case address := <-told:
		return address
	default:
		return s.url.Host // the time was over before
	}
}

// tlsWords says what a handshake came to.
func tlsWords(state tls.ConnectionState) string {
	cert := state.PeerCertificates[0]
	names := slices.Clone(cert.DNSNames)
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	days := int(time.Until(cert.NotAfter).Hours() / 24)
	return fmt.Sprintf("%s, certificate of %q by %q, good for %d days", tls.VersionName(state.Version),
		strings.Join(names, ", "), cert.Issuer.CommonName, days)
}
