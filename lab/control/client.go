package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/slipway-platform/slipway/lab/fault"
)

// Client sends requests to the lab behind a socket.
type Client struct{ http http.Client }

// NewClient returns a client for the Unix socket at path. It does not connect yet.
func NewClient(path string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	return &Client{http: http.Client{Transport: &http.Transport{DialContext: dial}}}
}

// Status returns what exists in the lab.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	return s, c.do(ctx, http.MethodGet, "/status", nil, &s)
}

// FaultOn switches a fault on and returns all that are on.
func (c *Client) FaultOn(ctx context.Context, f fault.Fault) ([]fault.Fault, error) {
	var all []fault.Fault
	return all, c.do(ctx, http.MethodPut, "/faults", f, &all)
}

// FaultOff switches a fault off, or all faults where kind is empty, and returns those still on.
func (c *Client) FaultOff(ctx context.Context, kind fault.Kind, target string) ([]fault.Fault, error) {
	var all []fault.Fault
	q := url.Values{"kind": {string(kind)}, "target": {target}}
	return all, c.do(ctx, http.MethodDelete, "/faults?"+q.Encode(), nil, &all)
}

func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://lab"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("lab control: %w; is the lab running?", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		return errors.Join(errors.New(strings.TrimSpace(string(text))), err)
	}
	return json.NewDecoder(resp.Body).Decode(out)
}
