//go:build e2e

package e2e

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/slipway-platform/slipway/tests/e2e/leaks"
)

// allowedVariables may hold secrets: a user passes the first one, and Pulumi passes the second one to the program. The owner of a process
// reads its environment, nobody else.
var allowedVariables = []string{"PROXMOX_VE_API_TOKEN", "PULUMI_CONFIG"}

// secretInput is a set of secret inputs that a stack can have at once.
type secretInput struct {
	name    string
	secrets map[string]string // by key of the stack file
	marks   map[string]string // the part of each that is searched for
	edit    func(settings)    // other keys that they need
	up      bool              // up applies them; otherwise they are previewed
}

// noCanaries sets every secret input of infra to a value that is nowhere else, runs previews and ups with it, some of which fail, and
// searches for it whatever is left or can be seen meanwhile: the state, all output, also at the highest verbosity, events, reports of the
// probe, arguments and environments of processes, temporary files, and the lab's logs.
func noCanaries(t *testing.T, l *lab) {
	const stack = "infra"
	file := l.stackFile(stack)
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	inputs := secretInputs(t)
	searched := &leaks.Secrets{}
	ownSecrets(t, l, searched)
	for _, input := range inputs {
		for key, mark := range input.marks {
			require.NoError(t, searched.Add(key, mark))
		}
	}
	for i, secret := range stackSecrets(t, l, stack) {
		if len(secret) >= 16 {
			require.NoError(t, searched.Add(fmt.Sprintf("%d of the state", i), secret))
		}
	}

	w := watchProcesses(t, l, searched)
	for _, input := range inputs {
		editStackFile(t, file, func(s settings) {
			if input.edit != nil {
				input.edit(s)
			}
		})
		for key, value := range input.secrets {
			l.setSecret(stack, key, value)
		}
		for _, how := range [][]string{
			{"preview", "--json"}, {"preview", "--diff", "--logtostderr", "--logflow", "-v=9"},
		} {
			w.run(input.name, append(how, "--stack", stack), true)
		}
		if input.up {
			w.run(input.name, []string{"up", "--yes", "--skip-preview", "--stack", stack, "--event-log", w.path("events-" + input.name)}, true)
			require.NoError(t, searchLater(w))
			// What fails says more than what succeeds.
			l.pulumi("config", "set", "--stack", stack, "--path", "slipway:secrets.onepassword.vaults[0]", "absent")
			l.pulumi("config", "set", "--stack", stack, "--path", "slipway:readiness.timeout", "20s")
			w.run(input.name, []string{"up", "--yes", "--skip-preview", "--logtostderr", "--logflow", "-v=9", "--stack", stack,
				"--event-log", w.path("events-of-the-failure")}, false)
		}
		require.NoError(t, os.WriteFile(file, before, 0o600))
	}
	w.end()
	l.pulumi("up", "--yes", "--skip-preview", "--stack", stack)

	w.files(filepath.Join(l.home(), "state"))
	w.files(filepath.Join(l.home(), "logs"))
	w.files(w.folder)
	clusters, err := filepath.Glob(filepath.Join(l.home(), "clusters", "*", "*"))
	require.NoError(t, err)
	for _, folder := range clusters {
		if name := filepath.Base(folder); name == "logs" {
			w.files(folder)
		}
	}
	l.mu.Lock()
	record := bytes.Clone(l.record.Bytes())
	l.mu.Unlock()
	w.search("the output of all commands so far", record)

	for _, leak := range slices.Sorted(maps.Keys(w.found)) {
		t.Error(leak)
	}
	require.Greater(t, w.processes, 20, "processes were searched")
	t.Logf("%d secrets × %d encodings in %d places: %d files, %d outputs, %d processes seen in %d looks", len(searched.Names()),
		searched.Encodings(), w.places+w.processes, w.places-w.outputs, w.outputs, w.processes, w.looks)
}

// searchLater fails if the runs so far have left nothing to search.
func searchLater(w *watcher) error {
	entries, err := os.ReadDir(w.folder)
	if err == nil && len(entries) == 0 {
		err = fmt.Errorf("%s: has no event log", w.folder)
	}
	return err
}

// ownSecrets adds the secrets that the lab has set.
func ownSecrets(t *testing.T, l *lab, searched *leaks.Secrets) {
	t.Helper()
	for i, secret := range labSecrets(t, l.home()) {
		require.NoError(t, searched.Add([]string{"proxmoxApiToken", "gitPassword"}[i], secret))
	}
	token, err := os.ReadFile(filepath.Join(l.onepassword(), "token"))
	require.NoError(t, err)
	signature := token[bytes.LastIndexByte(token, '.')+1:]
	require.NoError(t, searched.Add("onepasswordToken", string(signature)))
	text, err := os.ReadFile(filepath.Join(l.onepassword(), "1password-credentials.json"))
	require.NoError(t, err)
	var credentials struct {
		UniqueKey      struct{ K string }
		EncCredentials struct{ Data string }
	}
	require.NoError(t, json.Unmarshal(text, &credentials))
	require.NoError(t, searched.Add("onepasswordCredentials, key", credentials.UniqueKey.K))
	require.NoError(t, searched.Add("onepasswordCredentials, data", credentials.EncCredentials.Data))
	require.NoError(t, searched.Add("the item in 1Password", probeItem(t, l)))
}

// secretInputs makes new secrets for every key that the lab does not set.
func secretInputs(t *testing.T) []secretInput {
	t.Helper()
	key, certificate := newSealingPair(t)
	identity, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	public, err := ssh.NewPublicKey(private.Public())
	require.NoError(t, err)
	app, _ := newSealingPair(t)
	patch := "canary-" + rand.Text()
	body := func(text string) string { // a line from the middle of a PEM file
		lines := strings.Split(text, "\n")
		return lines[len(lines)/2]
	}
	openssh := string(pem.EncodeToMemory(block))
	return []secretInput{
		{
			name: "providers", up: true,
			secrets: map[string]string{"sopsAgeKey": identity.String(), "sealedSecretsKey": key, "sealedSecretsCert": certificate},
			marks:   map[string]string{"sopsAgeKey": identity.String(), "sealedSecretsKey": body(key)},
			edit: func(s settings) { // the pairs that the stack has made stay: they are protected
				providers := s["slipway:secrets"].(map[string]any)
				if sealed := providers["sealedSecrets"].(map[string]any); sealed["keyPairs"] == nil {
					sealed["keyPairs"] = 1
				}
			},
		},
		{
			name:    "patches",
			secrets: map[string]string{"talosSecretPatches": "all: [{machine: {registries: {config: {registry.example.com: {auth: {password: " + patch + "}}}}}}]"},
			marks:   map[string]string{"talosSecretPatches": patch},
		},
		{
			name: "ssh", secrets: map[string]string{"gitIdentity": openssh}, marks: map[string]string{"gitIdentity": body(openssh)},
			edit: func(s settings) {
				delete(s, "slipway:gitPassword")
				s.set("gitops", map[string]any{
					"url":        "ssh://git@git.home.arpa/platform/slipway.git",
					"knownHosts": "git.home.arpa " + string(ssh.MarshalAuthorizedKey(public)),
				})
			},
		},
		{
			name: "app", secrets: map[string]string{"githubAppPrivateKey": app}, marks: map[string]string{"githubAppPrivateKey": body(app)},
			edit: func(s settings) {
				delete(s, "slipway:gitPassword")
				s.set("gitops", map[string]any{
					"url": "https://github.com/a/b", "githubApp": map[string]any{"id": 1, "installationID": 2},
				})
			},
		},
	}
}

// watcher searches what can be seen while commands run in a lab.
type watcher struct {
	t        *testing.T
	lab      *lab
	searched *leaks.Secrets
	folder   string // for what the commands write, with the temporary files
	stop     chan struct{}
	stopped  chan struct{}

	mu                        sync.Mutex
	found                     map[string]bool
	seen                      map[string]bool // processes
	places, outputs           int
	processes, looks, nothing int
}

// watchProcesses searches the processes of the lab and the temporary files of its commands, again and again until end.
func watchProcesses(t *testing.T, l *lab, searched *leaks.Secrets) *watcher {
	t.Helper()
	w := &watcher{
		t: t, lab: l, searched: searched, folder: filepath.Join(l.home(), "canaries"), stop: make(chan struct{}), stopped: make(chan struct{}),
		found: map[string]bool{}, seen: map[string]bool{},
	}
	require.NoError(t, os.MkdirAll(w.path("tmp"), 0o700))
	namespace := strings.TrimSpace(l.in("readlink", "/proc/self/ns/pid"))
	go func() {
		defer close(w.stopped)
		for {
			w.look(namespace)
			select {
			case <-w.stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return w
}

func (w *watcher) path(name string) string { return filepath.Join(w.folder, name) }

func (w *watcher) look(namespace string) {
	all, err := leaks.Processes("/proc", namespace)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	if err != nil {
		w.nothing++
		return
	}
	for _, process := range all {
		id := process.ID + " " + strings.Join(process.Arguments, " ")
		if w.seen[id] {
			continue
		}
		w.seen[id] = true
		w.processes++
		w.add(w.searched.Process(process, allowedVariables...))
	}
	if found, files, err := w.searched.Files(w.path("tmp")); err == nil {
		w.places += files
		w.add(found)
	}
}

// add is called with the lock.
func (w *watcher) add(found []leaks.Leak) {
	for _, leak := range found {
		w.found[leak.String()] = true
	}
}

func (w *watcher) search(place string, text []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.places++
	w.add(w.searched.Search(place, text))
}

// files searches a folder, which must have files.
func (w *watcher) files(folder string) {
	w.t.Helper()
	found, files, err := w.searched.Files(folder)
	require.NoError(w.t, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.places += files
	w.add(found)
}

// run runs pulumi with its temporary files in the watcher's folder, and searches the output.
func (w *watcher) run(name string, arguments []string, succeeds bool) {
	w.t.Helper()
	command := append([]string{"exec", "--", "env", "PULUMI_DEBUG_COMMANDS=true", "TMPDIR=" + w.path("tmp"), "pulumi", "--non-interactive",
		"--color=never"}, arguments...)
	out, err := w.lab.cmd(w.t.Context(), command...).CombinedOutput()
	assert.Equal(w.t, succeeds, err == nil, "%s: %v: %v\n%s", name, arguments, err, end(string(out)))
	require.NotEmpty(w.t, out)
	w.mu.Lock()
	w.outputs++
	w.mu.Unlock()
	w.search(fmt.Sprintf("the output of %s with %s", strings.Join(arguments, " "), name), out)
}

func (w *watcher) end() {
	w.t.Helper()
	close(w.stop)
	<-w.stopped
	require.Zero(w.t, w.nothing, "looks that saw no process")
}
