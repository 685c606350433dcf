package faults

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/golden"
)

const document = "../../../docs/faults.md"

// tables are the parts of the document that are written, by the names in their marks.
var tables = map[string]func() string{"table": Table, "table of the mesh": MeshTable, "table of the storage": StorageTable}

func TestDocument_ShowsTheMatrix(t *testing.T) {
	for name, table := range tables {
		golden.Part(t, document, name, table())
	}
}

func TestMeshCases_DeclareWhatTheyExpect(t *testing.T) {
	names := map[string]bool{}
	for _, c := range MeshCases {
		assert.False(t, names[c.Name], "%s: twice", c.Name)
		names[c.Name] = true
		assert.NotEmpty(t, c.Made, c.Name)
		_, err := regexp.Compile(c.Says)
		assert.NoError(t, err, c.Name)
	}
}

func TestStorageCases_DeclareWhatTheyExpect(t *testing.T) {
	names := map[string]bool{}
	for _, c := range StorageCases {
		assert.False(t, names[c.Name], "%s: twice", c.Name)
		names[c.Name] = true
		assert.NotEmpty(t, c.Made, c.Name)
		_, err := regexp.Compile(c.Says)
		assert.NoError(t, err, c.Name)
	}
}

// The lab is another module. The lab's document, which is generated from its kinds of faults, lists them.
func TestCases_NameFaultsOfTheLab(t *testing.T) {
	lab, err := os.ReadFile("../../../docs/lab.md")
	require.NoError(t, err)
	for _, c := range slices.Concat(Lanes...) {
		assert.Contains(t, string(lab), "\n| `"+c.Kind+"` |", c.Name)
	}
}

func TestCases_DeclareWhatTheyExpect(t *testing.T) {
	names := map[string]bool{}
	for _, c := range slices.Concat(Lanes...) {
		assert.False(t, names[c.Name], "%s: twice", c.Name)
		names[c.Name] = true
		assert.Contains(t, Moments, c.Moment, c.Name)
		assert.Equal(t, c.Up == Stops, c.Says != "", "%s: Says is set exactly if up stops", c.Name)
		if c.Before != "" {
			assert.NotEmpty(t, c.Absent(), "%s: %s is not in the chain", c.Name, c.Before)
		}
		_, err := regexp.Compile(c.Says)
		assert.NoError(t, err, c.Name)
	}
}

func TestLanes_GoThroughTheMomentsInOrder(t *testing.T) {
	for _, lane := range Lanes {
		assert.True(t, slices.IsSortedFunc(lane, func(a, b Case) int {
			return slices.Index(Moments, a.Moment) - slices.Index(Moments, b.Moment)
		}), "%s …", lane[0].Name)
	}
}
