package leftover

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// between is the pause before the next request to an API server that did not answer.
const between = time.Second

var errNotFound = errors.New("not found")

// client sends requests to one API server.
type client struct {
	http   *http.Client
	server string
}

// kubeconfig is the used part of the file: the first cluster and the first user, because Talos writes one of each.
type kubeconfig struct {
	Clusters []struct {
		Cluster struct {
			Server    string `json:"server"`
			Authority []byte `json:"certificate-authority-data"`
		} `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		User struct {
			Certificate []byte `json:"client-certificate-data"`
			Key         []byte `json:"client-key-data"`
		} `json:"user"`
	} `json:"users"`
}

// connect returns a client for the kubeconfig's cluster. Its errors contain nothing of the kubeconfig.
func connect(text string) (*client, error) {
	var file kubeconfig
	if err := yaml.Unmarshal([]byte(text), &file); err != nil || len(file.Clusters) != 1 || len(file.Users) != 1 {
		return nil, errors.New("kubeconfig: not YAML with one cluster and one user")
	}
	cluster, user := file.Clusters[0].Cluster, file.Users[0].User
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(cluster.Authority) {
		return nil, errors.New("kubeconfig: the cluster has no certificate-authority-data")
	}
	certificate, err := tls.X509KeyPair(user.Certificate, user.Key)
	if err != nil {
		return nil, errors.New("kubeconfig: the user has no client certificate and key that belong together")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{
		RootCAs: authorities, Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12,
	}
	return &client{http: &http.Client{Transport: transport, Timeout: 10 * time.Second}, server: strings.TrimSuffix(cluster.Server, "/")}, nil
}

// do sends a request until the server answers with a status that is not temporary, or ctx ends; answer may be nil.
func (c *client) do(ctx context.Context, method, path string, answer any) error {
	for {
		again, err := c.once(ctx, method, path, answer)
		if err == nil || !again {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(between):
		}
	}
}

func (c *client) once(ctx context.Context, method, path string, answer any) (again bool, err error) {
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, http.NoBody)
	if err != nil {
		return false, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return true, err
	}
	defer response.Body.Close() //nolint:errcheck // closing a reader loses no data
	switch {
	case response.StatusCode == http.StatusNotFound:
		return false, errNotFound
	case response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests:
		return true, fmt.Errorf("%s %s: %s", method, path, response.Status)
	case response.StatusCode >= http.StatusMultipleChoices:
		return false, fmt.Errorf("%s %s: %s", method, path, response.Status)
	case answer == nil:
		_, err := io.Copy(io.Discard, response.Body)
		return true, err
	}
	return true, json.NewDecoder(response.Body).Decode(answer)
}
