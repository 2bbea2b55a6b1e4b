"""The calls of agentbox's quick start. Only the import is Paddock's: grpcio and generated code are not needed.

    python3 agentbox_quickstart.py
"""

import os

from paddock.compat.agentbox import grpc, sandbox_pb2, sandbox_pb2_grpc

channel = grpc.insecure_channel(os.environ.get("PADDOCK_URL", "localhost:7080"))
stub = sandbox_pb2_grpc.SandboxServiceStub(channel)

session_id = stub.CreateSession(sandbox_pb2.CreateSessionRequest()).session.session_id
print("session", session_id)
try:
    result = stub.Exec(sandbox_pb2.ExecRequest(session_id=session_id, command="python3 -c 'print(1+1)'", timeout=30))
    print(result.exit_code, result.stdout)
    stub.WriteFile(sandbox_pb2.WriteFileRequest(session_id=session_id, path="script.py", content="print('hello')", mode="w"))
    print(stub.ReadFile(sandbox_pb2.ReadFileRequest(session_id=session_id, path="script.py")).content)
    for piece in stub.ExecStream(sandbox_pb2.ExecStreamRequest(session_id=session_id, command="python3 script.py")):
        print(piece.type, piece.data or piece.exit_code)
    print(len(stub.ListSessions(sandbox_pb2.ListSessionsRequest()).sessions), "sessions")
finally:
    print(stub.DestroySession(sandbox_pb2.DestroySessionRequest(session_id=session_id)).success)
