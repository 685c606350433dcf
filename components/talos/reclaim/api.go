package reclaim

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// TokenVariable is where the Proxmox provider, and so API, looks for a token that is not given.
const TokenVariable = "PROXMOX_VE_API_TOKEN" //nolint:gosec // the name of a variable

// API is the way to Proxmox VE: the same that its provider is configured with.
type API struct {
	Endpoint string // https URL, such as https://pve.home.arpa:8006/
	Token    string // USER@REALM!TOKENID=UUID; secret; "" means that of the environment variable TokenVariable
	Insecure bool   // skip the verification of the endpoint's certificate; default false
}

// machine is what Proxmox knows of a VM.
type machine struct {
	node, name, description string
	status, lock            string // lock is what is being done to it; "" means nothing
}

// locate tells on which Proxmox node a VM is; "" if there is none with the id.
func (c *proxmox) locate(ctx context.Context, id int) (node string, err error) {
	var all []struct {
		VMID int
		Node string
	}
	if err := c.do(ctx, http.MethodGet, "cluster/resources?type=vm", &all); err != nil {
		return "", err
	}
	for _, vm := range all {
		if vm.VMID == id {
			return vm.Node, nil
		}
	}
	return "", nil
}

// inspect asks the Proxmox node itself: the cluster's list of VMs lags behind, and names a new one late.
func (c *proxmox) inspect(ctx context.Context, node string, id int) (*machine, error) {
	var config struct{ Name, Description, Lock string }
	if err := c.do(ctx, http.MethodGet, vmPath(node, id)+"/config", &config); err != nil {
		return nil, err
	}
	var current struct{ Status string }
	if err := c.do(ctx, http.MethodGet, vmPath(node, id)+"/status/current", &current); err != nil {
		return nil, err
	}
	return &machine{
		node: node, name: config.Name, status: current.Status, lock: config.Lock,
		description: strings.TrimSpace(config.Description), // Proxmox keeps it with a line end of its own
	}, nil
}

// run has Proxmox do something to a VM and waits for the task to end.
func (c *proxmox) run(ctx context.Context, node string, id int, method, action string) error {
	var task string
	if err := c.do(ctx, method, vmPath(node, id)+action, &task); err != nil {
		return err
	}
	return until(ctx, func() (bool, error) {
		var status struct{ Status, ExitStatus string }
		if err := c.do(ctx, http.MethodGet, "nodes/"+url.PathEscape(node)+"/tasks/"+url.PathEscape(task)+"/status", &status); err != nil {
			return false, err
		}
		if status.Status != "stopped" {
			return false, errors.New("the task is still running")
		}
		if status.ExitStatus != "OK" {
			return true, fmt.Errorf("%s %s of VM %d: %s", method, action, id, status.ExitStatus)
		}
		return true, nil
	})
}

func vmPath(node string, id int) string {
	return "nodes/" + url.PathEscape(node) + "/qemu/" + strconv.Itoa(id)
}

// proxmox speaks Proxmox's API.
type proxmox struct {
	http        http.Client
	base, token string
}

func (a API) connect() (*proxmox, error) {
	token := a.Token
	if token == "" {
		token = os.Getenv(TokenVariable)
	}
	if token == "" {
		return nil, fmt.Errorf("no Proxmox API token; set %s", TokenVariable)
	}
	transport := &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: a.Insecure}, //nolint:gosec // the user's own choice, as for the provider
	}
	return &proxmox{
		http:  http.Client{Transport: transport, Timeout: 30 * time.Second},
		base:  strings.TrimRight(a.Endpoint, "/") + "/api2/json/",
		token: token,
	}, nil
}

// do makes one request and decodes the data of the reply. Its errors hold Proxmox's reason and not the token.
func (c *proxmox) do(ctx context.Context, method, path string, data any) error {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "PVEAPIToken="+c.token)
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("proxmox: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	body, err := io.ReadAll(io.LimitReader(response.Body, 16<<20))
	if err != nil {
		return fmt.Errorf("proxmox: %s %s: %w", method, path, err)
	}
	if response.StatusCode != http.StatusOK {
		return &refusal{method: method, path: path, status: response.Status, code: response.StatusCode}
	}
	if err := json.Unmarshal(body, &struct{ Data any }{data}); err != nil {
		return fmt.Errorf("proxmox: %s %s: %w", method, path, err)
	}
	return nil
}

// refusal is a reply of Proxmox that is not the one asked for.
type refusal struct {
	method, path, status string
	code                 int
}

func (r *refusal) Error() string {
	return fmt.Sprintf("proxmox: %s %s: %s", r.method, r.path, r.status)
}

// passing tells whether asking again may help. Proxmox answers 500 for a VM that just came or went.
func passing(err error) bool {
	var refused *refusal
	return !errors.As(err, &refused) || refused.code >= http.StatusInternalServerError
}

// until repeats a look every second, until it is done or the context is. An error of a look that is not done is what it
// waits over.
func until(ctx context.Context, look func() (done bool, err error)) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		done, err := look()
		if done {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (last: %w)", context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}
