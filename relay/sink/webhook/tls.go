package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// config makes what every connection starts from. The error is every mistake of the configuration, each in a line that names
// the file.
func (t *TLS) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t == nil {
		return c, nil
	}
	c.ServerName = t.ServerName
	roots, err := t.roots()
	if err := errors.Join(err, t.checkKeyPair()); err != nil {
		return nil, err
	}
	c.RootCAs = roots
	if t.CertFile != "" {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return t.keyPair() }
	}
	return c, nil
}

// roots are whom we trust; nil: whom the system does.
func (t *TLS) roots() (*x509.CertPool, error) {
	if t.CAFile == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, fmt.Errorf("webhook.tls.ca_file: %w", fileError(err))
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("webhook.tls.ca_file: %s holds no certificate in PEM", t.CAFile)
	}
	return roots, nil
}

// checkKeyPair finds every file of our certificate that cannot be read.
func (t *TLS) checkKeyPair() error {
	if t.CertFile == "" {
		return nil
	}
	var errs []error
	for key, name := range map[string]string{"cert_file": t.CertFile, "key_file": t.KeyFile} {
		if _, err := os.ReadFile(name); err != nil {
			errs = append(errs, fmt.Errorf("webhook.tls.%s: %w", key, fileError(err)))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if _, err := t.keyPair(); err != nil {
		return fmt.Errorf("webhook.tls.cert_file: %w", err)
	}
	return nil
}

// keyPair reads our certificate. It is asked again for every connection, since certificates are renewed in place.
func (t *TLS) keyPair() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return nil, fileError(err)
	case err != nil:
		return nil, fmt.Errorf("%s and %s are no certificate and its key in PEM: %w", t.CertFile, t.KeyFile, err)
	}
	return &pair, nil
}

// fileError says in one line which file could not be read, and why.
func fileError(err error) error {
	var path *fs.PathError
	if !errors.As(err, &path) {
		return err
	}
	return fmt.Errorf("cannot read %s: %w", path.Path, path.Err)
}
