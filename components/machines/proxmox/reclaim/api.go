package reclaim

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/probe"
)

// tokenVariable is the environment variable that the Proxmox provider, and API, read an unset token from.
const tokenVariable = "PROXMOX_VE_API_TOKEN"

// API is the address of and the access to the Proxmox VE API, as the Proxmox provider has them.
type API struct {
	Endpoint string `json:"endpoint"` // https URL, such as https://pve.home.arpa:8006/
	// USER@REALM!TOKENID=UUID; secret; "" means the value of the environment variable PROXMOX_VE_API_TOKEN
	Token    string `json:"token,omitempty"`
	Insecure bool   `json:"insecure,omitempty"` // skip the verification of the endpoint's certificate; default false
}

// machine is a VM as Proxmox reports it. A container is one, too, of which only the node and the name are known.
type machine struct {
	container               bool
	node, name, description string
	status, lock            string // lock names the operation in progress; "" means none

	// later is what the VM has and no interrupted creation leaves: disks that were detached, or a snapshot; "" means nothing. Talos does not
	// see it, and the deletion of the VM deletes it.
	later string
}

// guest is an entry of the cluster's list of VMs and containers.
type guest struct {
	VMID int
	Node string // Proxmox node
	Type string // qemu for a VM, lxc for a container
	Name string // "" if Proxmox does not know it yet
}

func (g guest) container() bool { return g.Type != "qemu" }

// locate returns all VMs and containers by their ids, which they share.
func (c *proxmox) locate(ctx context.Context) (guests map[int]guest, err error) {
	var all []guest
	if err := c.do(ctx, http.MethodGet, "cluster/resources?type=vm", &all); err != nil {
		return nil, err
	}
	guests = map[int]guest{}
	for _, guest := range all {
		guests[guest.VMID] = guest
	}
	return guests, nil
}

// inspect asks the Proxmox node for a VM: the cluster's list of VMs is updated late, so that a new VM has no name in it.
func (c *proxmox) inspect(ctx context.Context, node string, id int) (*machine, error) {
	var config map[string]any
	if err := c.do(ctx, http.MethodGet, vmPath(node, id)+"/config", &config); err != nil {
		return nil, err
	}
	var current struct{ Status string }
	if err := c.do(ctx, http.MethodGet, vmPath(node, id)+"/status/current", &current); err != nil {
		return nil, err
	}
	text := func(option string) string { value, _ := config[option].(string); return value }
	return &machine{
		node: node, name: text("name"), status: current.Status, lock: text("lock"), later: laterThanCreation(config),
		description: strings.TrimSpace(text("description")), // Proxmox appends a line break
	}, nil
}

// detached matches the options in which Proxmox VE keeps the disks that were detached from a VM.
var detached = regexp.MustCompile(`^unused\d+$`)

// laterThanCreation returns what a VM's configuration has and its creation does not give it.
func laterThanCreation(config map[string]any) string {
	var found []string
	for _, option := range slices.Sorted(maps.Keys(config)) {
		switch {
		case detached.MatchString(option):
			found = append(found, fmt.Sprintf("the detached disk %v", config[option]))
		case option == "parent":
			found = append(found, fmt.Sprintf("the snapshot %v", config[option]))
		}
	}
	return strings.Join(found, " and ")
}

// run starts a task of Proxmox on a VM and waits until it ends.
func (c *proxmox) run(ctx context.Context, node string, id int, method, action string) error {
	var task string
	if err := c.do(ctx, method, vmPath(node, id)+action, &task); err != nil {
		return err
	}
	exit, err := c.ended(ctx, node, task)
	if err == nil && exit != "OK" {
		err = &taskError{method, action, id, exit}
	}
	return err
}

// taskError is a task of a VM that Proxmox VE has begun, and that failed.
type taskError struct {
	method, action string
	id             int
	exit           string // exit status, Proxmox's words
}

func (e *taskError) Error() string {
	return fmt.Sprintf("%s %s of VM %d: %s", e.method, e.action, e.id, e.exit)
}

// ended waits until a task has ended, and returns its exit status. A task that ends with warnings has done its work, by
// upid_status_is_error in Proxmox's PVE/Tools.pm.
func (c *proxmox) ended(ctx context.Context, node, task string) (exit string, err error) {
	err = until(ctx, "the end of a task", func(ctx context.Context) (string, error) {
		var status struct{ Status, ExitStatus string }
		if err := c.do(ctx, http.MethodGet, "nodes/"+url.PathEscape(node)+"/tasks/"+url.PathEscape(task)+"/status", &status); err != nil {
			return err.Error(), nil
		}
		if status.Status != "stopped" {
			return "the task is still running", nil
		}
		if exit = status.ExitStatus; strings.HasPrefix(exit, "WARNINGS: ") {
			exit = "OK"
		}
		return "", nil
	})
	return exit, err
}

func vmPath(node string, id int) string {
	return "nodes/" + url.PathEscape(node) + "/qemu/" + strconv.Itoa(id)
}

// proxmox is a client of Proxmox's API.
type proxmox struct {
	http        http.Client
	base, token string
	renew       string // how to give a token that Proxmox VE accepts
}

// setToken is the command that stores the token in a stack's configuration.
const setToken = "pulumi config set --secret slipway:proxmoxApiToken"

func (a API) connect() (*proxmox, error) {
	token, renew := a.Token, "set the token again: "+setToken
	if token == "" {
		token, renew = os.Getenv(tokenVariable), "export "+tokenVariable+" with the token again, or set it with: "+setToken
	}
	if token == "" {
		return nil, errors.New("no Proxmox API token; set it with: " + setToken + ", or export " + tokenVariable)
	}
	transport := &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: a.Insecure}, //nolint:gosec // the user's own choice, as for the provider
	}
	return &proxmox{
		http:  http.Client{Transport: transport, Timeout: 30 * time.Second},
		base:  strings.TrimRight(a.Endpoint, "/") + "/api2/json/",
		token: token,
		renew: renew,
	}, nil
}

// do sends one request and decodes the data of the reply. Its errors contain Proxmox's reason and never the token.
func (c *proxmox) do(ctx context.Context, method, path string, data any) error {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "PVEAPIToken="+c.token)
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("proxmox: %w%s", err, trustRemedy(err))
	}
	defer response.Body.Close() // read to its end
	body, err := io.ReadAll(io.LimitReader(response.Body, 16<<20))
	if err != nil {
		return fmt.Errorf("proxmox: %s %s: %w", method, path, err)
	}
	if response.StatusCode != http.StatusOK {
		failed := &statusError{method: method, path: path, status: response.Status, code: response.StatusCode}
		return fmt.Errorf("%w%s", failed, c.accessRemedy(failed.code))
	}
	if err := json.Unmarshal(body, &struct{ Data any }{data}); err != nil {
		return fmt.Errorf("proxmox: %s %s: %w", method, path, err)
	}
	return nil
}

// statusError is a reply of Proxmox with a status other than 200.
type statusError struct {
	method, path, status string
	code                 int
}

func (r *statusError) Error() string {
	return fmt.Sprintf("proxmox: %s %s: %s", r.method, r.path, r.status)
}

// giveRole is what to do about a privilege that the token lacks. Proxmox VE names the privilege in its reply.
const giveRole = "give the token's user the role of docs/quickstart.md on /, and make the token with --privsep 0"

// accessRemedy returns what to do about a token that Proxmox VE refuses, to be appended to the error; "" for another error.
func (c *proxmox) accessRemedy(code int) string {
	switch code {
	case http.StatusUnauthorized:
		return "; " + c.renew
	case http.StatusForbidden:
		return "; " + giveRole
	}
	return ""
}

// trustRemedy returns what to do about a certificate that is not trusted, to be appended to the error; "" for another error. The Proxmox
// provider trusts the same CAs.
func trustRemedy(err error) string {
	const insecure = ", or set proxmox.insecure: true"
	switch {
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return "; copy /etc/pve/pve-root-ca.pem from a Proxmox node and export SSL_CERT_FILE with its path (macOS: trust it in the keychain)" +
			insecure
	case errors.As(err, new(x509.HostnameError)):
		return "; write a name or an address of the certificate in proxmox.endpoint" + insecure
	}
	return ""
}

// temporary reports whether the same request may succeed later. Proxmox answers 500 for a VM that was created or deleted just now.
func temporary(err error) bool {
	var failed *statusError
	return trustRemedy(err) == "" && (!errors.As(err, &failed) || failed.code >= http.StatusInternalServerError)
}

// until looks every second, until nothing is missing or the context ends. One look may wait for a task of Proxmox VE.
func until(ctx context.Context, what string, look func(context.Context) (missing string, err error)) error {
	return probe.Wait{Look: restartTimeout}.Until(ctx, what, look)
}

// retry returns a temporary error as what is missing, and any other one as an error.
func retry(err error) (missing string, final error) {
	if temporary(err) {
		return err.Error(), nil
	}
	return "", err
}
