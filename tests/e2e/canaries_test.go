//go:build e2e

package e2e

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/e2e/leaks"
)

// allowedVariables may hold secrets: see docs/credentials.md.
var allowedVariables = []string{"PROXMOX_VE_API_TOKEN", "PULUMI_CONFIG"}

// keptKubeconfig is what the Kubernetes plugin leaves in TMPDIR: see docs/credentials.md.
var keptKubeconfig = regexp.MustCompile(`/kubeconfig[0-9]+ has the secret \d+ of the state of infra`)

// noSecrets gives infra a canary, a value that is nowhere else, in every secret input, makes previews and runs, some of which fail, and
// searches everything that is left, and that can be seen meanwhile, for the canary and all other secrets. The last run has failed:
// destroyed, which follows, destroys what it left.
func noSecrets(t *testing.T, l *lab) {
	file := l.stackFile("infra")
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	w := watch(t, l, known(t, l))
	inputs := canaries(t)
	for _, input := range inputs {
		for key, mark := range input.marks {
			require.NoError(t, w.secrets.Add(key, mark))
		}
	}
	for key := range cluster.Keys(reflect.TypeFor[cluster.Secrets]()) {
		if name := key.Tag.Get("json"); name != "sealedSecretsCert" {
			require.Contains(t, w.secrets.Names(), name, "a secret input without a canary")
		}
	}
	go w.looks()
	for i, input := range inputs {
		input.plant(t, l)
		w.run(input.name, !input.refused, "preview", "--diff", "--debug", "--event-log", w.path(fmt.Sprint("events-of-preview-", i)))
		if input.up {
			w.run(input.name, true, "preview", "--json")
			w.run(input.name, true, "up", "--yes", "--skip-preview", "--debug", "--event-log", w.path("events"))
			l.pulumi("config", "set", "--stack", "infra", "--path", "slipway:secrets.onepassword.vaults[0]", "absent")
			l.pulumi("config", "set", "--stack", "infra", "--path", "slipway:readiness.timeout", "20s")
			w.run(input.name, false, "up", "--yes", "--skip-preview", "--debug", "--event-log", w.path("events-of-a-failure"))
		}
		require.NoError(t, os.WriteFile(file, before, 0o600))
	}
	w.end()

	w.files(filepath.Join(l.home(), "state"))
	w.files(filepath.Join(l.home(), "logs"))
	w.files(filepath.Join(l.home(), "project"))
	w.files(filepath.Join(l.home(), "pulumi", "logs"))
	w.files(w.folder)
	logs, err := filepath.Glob(filepath.Join(l.home(), "clusters", "*", "*", "logs"))
	require.NoError(t, err)
	for _, folder := range logs {
		w.files(folder)
	}
	for _, stack := range []string{"infra", "apps"} {
		w.search("events of Kubernetes", []byte(l.in("kubectl", "--context=admin@"+stack, "get", "events", "--all-namespaces", "--output=json")))
	}
	l.mu.Lock()
	w.search("the output of all commands", bytes.Clone(l.record.Bytes()))
	l.mu.Unlock()
	for _, leak := range slices.Sorted(maps.Keys(w.found)) {
		if !keptKubeconfig.MatchString(leak) {
			t.Error(leak)
		}
	}
	kept, err := filepath.Glob(w.path("tmp/kubeconfig*"))
	require.NoError(t, err)
	require.NotEmpty(t, kept, "the Kubernetes plugin keeps no kubeconfig any more: fix docs/credentials.md and this test")
	for _, file := range kept {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
	}
	require.Greater(t, len(w.secrets.Names()), 30)
	require.Greater(t, len(w.processes), 20)
	require.Greater(t, w.places, 50)
	t.Logf("%d secrets in %d encodings in %d files and outputs and in %d processes", len(w.secrets.Names()), w.secrets.Encodings(),
		w.places, len(w.processes))
}

// canary is a set of secret inputs that a stack can have at once.
type canary struct {
	name    string
	inputs  map[string]string // by key of the stack file
	marks   map[string]string // the part of each that is searched for; by key
	edit    func(settings)    // the other keys that they need
	up      bool              // they are applied, too
	refused bool
}

func (c canary) plant(t *testing.T, l *lab) {
	t.Helper()
	if c.edit != nil {
		editStackFile(t, l.stackFile("infra"), c.edit)
	}
	for key, value := range c.inputs {
		l.setSecret("infra", key, value)
	}
}

// canaries makes new secrets for every key that the lab does not set.
func canaries(t *testing.T) []canary {
	t.Helper()
	old, oldCertificate := newSealingPair(t, time.Hour)
	key, certificate := newSealingPair(t, time.Minute)
	app, _ := newSealingPair(t, time.Minute)
	identity, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	snapshots, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	host, err := ssh.NewPublicKey(public)
	require.NoError(t, err)
	deploy := string(pem.EncodeToMemory(block))
	login := func(registry, password string) string {
		return `{"auths": {"` + registry + `": {"auth": "` + encoding.EncodeToString([]byte("robot:"+password)) + `"}}}`
	}
	patch, images, artifact, bucketKey := "canary-"+rand.Text(), "canary-"+rand.Text(), "canary-"+rand.Text(), rand.Text()
	bucket, snapshotKey, snapshotSecret := rand.Text()+rand.Text(), rand.Text(), rand.Text()+rand.Text()
	source := func(values map[string]any) func(settings) {
		return func(s settings) {
			delete(s, "slipway:gitPassword")
			delete(s["slipway:gitops"].(map[string]any), "url")
			delete(s["slipway:gitops"].(map[string]any), "username")
			s.set("gitops", values)
		}
	}
	malformed := "canary-" + rand.Text()
	return []canary{
		{
			name: "an SSH key", inputs: map[string]string{"gitIdentity": deploy}, marks: map[string]string{"gitIdentity": middle(deploy)},
			edit: source(map[string]any{
				"url": "ssh://git@git.home.arpa/platform/slipway.git", "knownHosts": "git.home.arpa " + string(ssh.MarshalAuthorizedKey(host)),
			}),
		},
		{
			name: "a GitHub App", inputs: map[string]string{"githubAppPrivateKey": app}, marks: map[string]string{"githubAppPrivateKey": middle(app)},
			edit: source(map[string]any{"url": "https://github.com/a/b", "githubApp": map[string]any{"id": 1, "installationId": 2}}),
		},
		{
			name: "an OCI artifact", inputs: map[string]string{"ociConfig": login("registry.example.com", artifact)}, marks: map[string]string{"ociConfig": artifact},
			edit: source(map[string]any{"oci": map[string]any{"url": "oci://registry.example.com/platform/slipway"}}),
		},
		{
			name: "a bucket", inputs: map[string]string{"bucketAccessKey": bucketKey, "bucketSecretKey": bucket},
			marks: map[string]string{"bucketAccessKey": bucketKey, "bucketSecretKey": bucket},
			edit: source(map[string]any{
				"bucket": map[string]any{"endpoint": "minio.example.com", "name": "slipway"},
			}),
		},
		{
			name: "a registry of images", inputs: map[string]string{"fluxRegistryConfig": login("ghcr.io", images)},
			marks: map[string]string{"fluxRegistryConfig": images},
		},
		{
			name: "malformed secrets", refused: true,
			inputs: map[string]string{
				"sopsAgeKey": malformed, "sealedSecretsKey": malformed, "sealedSecretsCert": malformed, "talosSecretPatches": malformed,
				"onepasswordToken": malformed, "onepasswordCredentials": malformed, "gitPassword": " " + malformed,
				"onepasswordStorageToken": malformed,
				"fluxRegistryConfig":      malformed, "snapshotIdentity": malformed, cluster.MeshAuthorityKey: malformed,
				"snapshotAccessKey": " " + malformed, "snapshotSecretKey": " " + malformed,
			},
			marks: map[string]string{"malformed": malformed},
		},
		{
			name: "providers", up: true,
			inputs: map[string]string{
				"sopsAgeKey": identity.String(), "snapshotIdentity": snapshots.String(),
				"snapshotAccessKey": snapshotKey, "snapshotSecretKey": snapshotSecret,
				"sealedSecretsKey": key, "sealedSecretsCert": certificate, "sealedSecretsOldKeys": old + oldCertificate,
				"talosSecretPatches": "all: [{machine: {registries: {config: {registry.example.com: {auth: {password: " + patch + "}}}}}}]",
			},
			marks: map[string]string{
				"sopsAgeKey": identity.String(), "snapshotIdentity": snapshots.String(), "sealedSecretsKey": middle(key),
				"sealedSecretsOldKeys": middle(old), "talosSecretPatches": patch,
				"snapshotAccessKey": snapshotKey, "snapshotSecretKey": snapshotSecret,
			},
			edit: func(s settings) { // the key that the stack has made stays: it is protected
				s.set("secrets", map[string]any{"sealedSecrets": map[string]any{"keyPairs": 1}})
				s.set("lifecycle", map[string]any{"snapshots": map[string]any{"recipients": []string{snapshots.Recipient().String()}}})
				settings := s["slipway:gitops"].(map[string]any)["settings"].(map[string]any)
				settings[cluster.SnapshotEndpoint], settings[cluster.SnapshotBucket] = "https://s3.home.arpa", "snapshots"
			},
		},
	}
}

// middle returns a line from the middle of a file in PEM.
func middle(text string) string {
	lines := strings.Split(text, "\n")
	return lines[len(lines)/2]
}

// watcher searches the output of a lab's commands, and what can be seen while they run, for secrets.
type watcher struct {
	t       *testing.T
	lab     *lab
	secrets *leaks.Secrets
	folder  string // for what the commands write; their temporary files are below tmp
	space   string // the lab's namespace of processes
	stop    chan struct{}
	stopped chan error

	mu        sync.Mutex
	found     map[string]bool
	processes map[string]bool
	places    int
}

func watch(t *testing.T, l *lab, secrets *leaks.Secrets) *watcher {
	t.Helper()
	w := &watcher{
		t: t, lab: l, secrets: secrets, folder: filepath.Join(l.home(), "canaries"), space: strings.TrimSpace(l.in("readlink", "/proc/self/ns/pid")),
		stop: make(chan struct{}), stopped: make(chan error, 1), found: map[string]bool{}, processes: map[string]bool{},
	}
	for _, folder := range []string{"tmp", "build"} {
		require.NoError(t, os.MkdirAll(w.path(folder), 0o700))
	}
	return w
}

func (w *watcher) path(name string) string { return filepath.Join(w.folder, name) }

// looks searches the processes and the temporary files again and again until end.
func (w *watcher) looks() {
	often := time.NewTicker(100 * time.Millisecond)
	defer often.Stop()
	for {
		select {
		case <-w.stop:
			w.stopped <- nil
			return
		case <-often.C:
		}
		if err := w.look(); err != nil {
			w.stopped <- err
			return
		}
	}
}

func (w *watcher) look() error {
	all, err := leaks.Processes("/proc", w.space)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, process := range all {
		id := process.ID + " " + strings.Join(process.Arguments, " ")
		if !w.processes[id] {
			w.processes[id] = true
			w.add(w.secrets.Process(process, allowedVariables...))
		}
	}
	if found, files, err := w.secrets.Files(w.path("tmp")); err == nil {
		w.places += files
		w.add(found)
	}
	return nil
}

// end ends the looks. All of them must have seen processes.
func (w *watcher) end() {
	w.t.Helper()
	close(w.stop)
	require.NoError(w.t, <-w.stopped)
}

// add is called with the lock.
func (w *watcher) add(found []leaks.Leak) {
	for _, leak := range found {
		w.found[leak.String()] = true
	}
}

func (w *watcher) search(place string, text []byte) {
	w.t.Helper()
	require.NotEmpty(w.t, text, place)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.places++
	w.add(w.secrets.Search(place, text))
}

// files searches a folder, which must have files.
func (w *watcher) files(folder string) {
	w.t.Helper()
	found, files, err := w.secrets.Files(folder)
	require.NoError(w.t, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.places += files
	w.add(found)
}

// run runs pulumi for infra with its temporary files in the watcher's folder, and searches what it prints.
func (w *watcher) run(name string, succeeds bool, arguments ...string) {
	w.t.Helper()
	command := append([]string{"exec", "--", "env", "PULUMI_DEBUG_COMMANDS=true", "TMPDIR=" + w.path("tmp"), "GOTMPDIR=" + w.path("build"),
		"pulumi", "--non-interactive", "--color=never", "--stack", "infra"}, arguments...)
	start := time.Now()
	out, err := w.lab.cmd(w.t.Context(), command...).CombinedOutput()
	w.t.Logf("%5.1f s  %s with %s", time.Since(start).Seconds(), strings.Join(arguments, " "), name)
	w.search(fmt.Sprintf("the output of %s with %s", strings.Join(arguments, " "), name), out)
	if succeeds != (err == nil) {
		require.Fail(w.t, "pulumi", "%s with %s: %v\n%s", arguments, name, err, end(string(out)))
	}
}
