package talos

import (
	"fmt"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// streamed tells whether a method of the machine service answers with a stream.
func streamed(method string) bool {
	return slices.ContainsFunc(machine.MachineService_ServiceDesc.Streams, func(s grpc.StreamDesc) bool {
		return method == "/machine.MachineService/"+s.StreamName
	})
}

// appendNode writes the name of the node into a reply. Every unary reply is `repeated X messages = 1`, every X and
// every message of a stream has `common.Metadata metadata = 1`; so the bytes can be put together without knowing X.
func appendNode(streaming bool, reply []byte, node string) ([]byte, error) {
	mark, err := proto.Marshal(&common.Empty{Metadata: &common.Metadata{Hostname: node}})
	if err != nil {
		return nil, err
	}
	if streaming {
		return slices.Concat(reply, mark), nil
	}
	num, typ, n := protowire.ConsumeTag(reply)
	if n < 0 {
		return nil, protowire.ParseError(n)
	}
	if num != 1 || typ != protowire.BytesType {
		return nil, fmt.Errorf("unexpected message format: field %d of type %d", num, typ)
	}
	inner, n := protowire.ConsumeBytes(reply[n:])
	if n < 0 {
		return nil, protowire.ParseError(n)
	}
	out := protowire.AppendTag(nil, 1, protowire.BytesType)
	return protowire.AppendBytes(out, slices.Concat(inner, mark)), nil
}

// nodeError is the reply of a node that could not give one.
func nodeError(streaming bool, node string, err error) []byte {
	empty := &common.Empty{Metadata: &common.Metadata{Hostname: node, Error: err.Error(), Status: status.Convert(err).Proto()}}
	var reply proto.Message = empty
	if !streaming {
		reply = &common.EmptyResponse{Messages: []*common.Empty{empty}}
	}
	out, merr := proto.Marshal(reply)
	if merr != nil {
		return nil // only a string that is no UTF-8 could do that
	}
	return out
}
