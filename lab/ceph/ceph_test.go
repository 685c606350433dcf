package ceph

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	address = "10.25.11.21:3300"
	user    = "client.csi"
)

// keyWarnings stay while there is a user with a key of type aes.
var keyWarnings = []string{"AUTH_INSECURE_CLIENT_KEY_TYPE", "AUTH_INSECURE_KEYS_ALLOWED", "AUTH_INSECURE_KEYS_CREATABLE"}

// start makes a cluster with one monitor, OSDs on some hosts, and a pool with two copies.
func start(t *testing.T, hosts ...string) (*World, *Cluster, string) {
	w := &World{Dir: t.TempDir()}
	c := w.Create(ParseVersion("v19.2.7"))
	for _, code := range keyWarnings {
		c.Mute(code, true)
	}
	c.SetMembers([]string{"a"})
	t.Cleanup(c.StartMonitor("a", address))
	for _, host := range hosts {
		stop, err := c.StartOSD(c.CreateOSD(host, host), host)
		require.NoError(t, err)
		t.Cleanup(stop)
	}
	c.SetDefaultCopies(2)
	c.SetPool("block", 2)
	return w, c, c.SetUser(user, map[string]string{"mon": "profile rbd", "osd": "profile rbd pool=block"}, AES)
}

func short(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 3*pollInterval)
	t.Cleanup(cancel)
	return ctx
}

func TestConnect_NeedsAMonitorInTheQuorumAndTheUsersKey(t *testing.T) {
	w, c, key := start(t)
	_, err := w.Connect(t.Context(), []string{"10.25.11.9:3300", address}, user, key)
	require.NoError(t, err)
	for name, try := range map[string][2]string{"a wrong key": {user, newKey(AES)}, "an unknown user": {"client.other", key}} {
		_, err := w.Connect(t.Context(), []string{address}, try[0], try[1])
		assert.ErrorIs(t, err, ErrDenied, name)
	}
	_, err = w.Connect(short(t), []string{"10.25.11.9:3300"}, user, key)
	assert.ErrorIs(t, err, context.DeadlineExceeded, "nobody has this address")
	c.SetMembers([]string{"a", "b"})
	_, err = w.Connect(short(t), []string{address}, user, key)
	assert.ErrorIs(t, err, context.DeadlineExceeded, "one of two is no quorum")
	c.RemoveUser(user)
	c.SetMembers([]string{"a"})
	_, err = w.Connect(t.Context(), []string{address}, user, key)
	assert.ErrorIs(t, err, ErrDenied, "a removed user's key")
}

func TestConnect_GoesOnOnceAMonitorAnswers(t *testing.T) {
	w := &World{Dir: t.TempDir()}
	c := w.Create(ParseVersion("v19.2.7"))
	c.SetMembers([]string{"a"})
	key := c.SetUser(user, nil, AES)
	time.AfterFunc(2*pollInterval, func() { c.StartMonitor("a", address) })
	s, err := w.Connect(t.Context(), []string{address}, user, key)
	require.NoError(t, err)
	assert.Equal(t, c.FSID, s.FSID())
}

func TestCreateImage_IsTheSameForTheSameNameAndRefusesAnotherSize(t *testing.T) {
	w, c, key := start(t, "w1", "w2")
	s, err := w.Connect(t.Context(), []string{address}, user, key)
	require.NoError(t, err)
	first, _, err := s.CreateImage(t.Context(), "block", "pvc-1", "csi-vol-", 1<<30)
	require.NoError(t, err)
	again, _, err := s.CreateImage(t.Context(), "block", "pvc-1", "csi-vol-", 1<<30)
	require.NoError(t, err)
	assert.Equal(t, first, again)
	_, _, err = s.CreateImage(t.Context(), "block", "pvc-1", "csi-vol-", 2<<30)
	assert.ErrorIs(t, err, ErrDiffers)
	assert.Equal(t, 1, c.Images())
	assert.Equal(t, 1, c.RemovePool("block"), "a pool with images stays")
	c.SetPool("other", 1)
	_, _, err = s.CreateImage(t.Context(), "other", "pvc-1", "csi-vol-", 1<<30)
	assert.ErrorIs(t, err, ErrCaps, "the user may use one pool")
	c.SetUser(user, map[string]string{"osd": "profile rbd"}, AES)
	_, _, err = s.CreateImage(t.Context(), "missing", "pvc-1", "csi-vol-", 1<<30)
	assert.ErrorIs(t, err, ErrNoPool)
}

func TestCreateImage_WaitsWhileTooFewHostsHaveOSDs(t *testing.T) {
	w, c, key := start(t)
	s, err := w.Connect(t.Context(), []string{address}, user, key)
	require.NoError(t, err)
	_, _, err = s.CreateImage(short(t), "block", "pvc-1", "csi-vol-", 1<<30)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, checks := c.Health()
	assert.Contains(t, checks, "PG_AVAILABILITY")
	assert.Equal(t, "OSD count 0 < osd_pool_default_size 2", checks["TOO_FEW_OSDS"])
	_, err = c.StartOSD(c.CreateOSD("w1", "w1"), "w1")
	require.NoError(t, err)
	_, _, err = s.CreateImage(t.Context(), "block", "pvc-1", "csi-vol-", 1<<30)
	require.NoError(t, err, "one of two copies is enough for an answer")
	health, checks := c.Health()
	assert.Equal(t, "HEALTH_WARN", health)
	assert.Contains(t, checks, "PG_DEGRADED")
}

func TestMap_GivesAnImageToOneClientAndKeepsItsBytes(t *testing.T) {
	w, c, key := start(t, "w1", "w2")
	c.StartManager("a")
	s, err := w.Connect(t.Context(), []string{address}, user, key)
	require.NoError(t, err)
	image, _, err := s.CreateImage(t.Context(), "block", "pvc-1", "csi-vol-", 1<<30)
	require.NoError(t, err)
	dir, err := s.Map(t.Context(), "block", image, "infra/w1", false)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("word"), 0o600))
	_, err = s.Map(t.Context(), "block", image, "infra/w2", false)
	require.ErrorIs(t, err, ErrWatched)
	require.ErrorIs(t, s.DeleteImage(t.Context(), "block", image), ErrWatched)
	w.Forget("infra/w1") // its machine is switched off
	dir, err = s.Map(t.Context(), "block", image, "infra/w2", false)
	require.NoError(t, err)
	content, err := os.ReadFile(filepath.Join(dir, "file"))
	require.NoError(t, err)
	assert.Equal(t, "word", string(content))
	w.Unmap("infra/w2", dir)
	require.NoError(t, s.DeleteImage(t.Context(), "block", image))
	assert.NoDirExists(t, dir)
	require.ErrorIs(t, s.DeleteImage(t.Context(), "block", image), ErrNoImage)
	health, checks := c.Health()
	assert.Equal(t, "HEALTH_OK", health, checks)
}

func TestKeys_OfANewerCephAreNotMappedUnlessTheirTypeIsSaid(t *testing.T) {
	w, c, key := start(t, "w1", "w2")
	s, err := w.Connect(t.Context(), []string{address}, user, key)
	require.NoError(t, err)
	image, _, err := s.CreateImage(t.Context(), "block", "pvc-1", "csi-vol-", 1<<30)
	require.NoError(t, err)
	other := c.SetUser("client.other", map[string]string{"osd": "profile rbd"}, "")
	o, err := w.Connect(t.Context(), []string{address}, "client.other", other)
	require.NoError(t, err)
	_, err = o.Map(t.Context(), "block", image, "w1", false)
	require.ErrorIs(t, err, ErrKeyType)
	_, err = s.Map(t.Context(), "block", image, "w1", false)
	require.NoError(t, err)
}

func TestKeys_OfDaemonsAreAnErrorUntilTheyAreRotatedOnce(t *testing.T) {
	w := &World{}
	c := w.Create(ParseVersion("v19.2.3"))
	c.StartManager("a")
	c.SetDefaultCopies(0) // it has no OSDs
	health, checks := c.Health()
	require.Equal(t, "HEALTH_OK", health, checks)
	admin := func() string { return c.SetUser(Admin, nil, "") }
	before := admin()
	c.RotateDaemonKeys(2)
	c.SetVersion(ParseVersion("v19.2.7-20261008"))
	health, checks = c.Health()
	require.Equal(t, "HEALTH_ERR", health)
	require.Contains(t, checks, "AUTH_INSECURE_SERVICE_KEY_TYPE", "the older release has rotated nothing")
	c.RotateDaemonKeys(2)
	rotated := admin()
	require.NotEqual(t, before, rotated)
	c.RotateDaemonKeys(2)
	require.Equal(t, rotated, admin())
	c.SetUser(user, nil, AES)
	health, checks = c.Health()
	require.Equal(t, "HEALTH_WARN", health, checks)
	for _, code := range keyWarnings {
		c.Mute(code, true)
	}
	health, checks = c.Health()
	require.Equal(t, "HEALTH_OK", health, checks)
}

func TestParseVersion_ReadsTheTagsOfImages(t *testing.T) {
	for tag, newer := range map[string]bool{
		"v19.2.5": false, "v19.2.6": true, "v20.2.3": false, "v20.2.4-20260818": true, "v21.2.0": true, "x": false,
	} {
		require.Equal(t, newer, ParseVersion(tag).knowsAES256K(), tag)
	}
}
