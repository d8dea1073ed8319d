// SPDX-License-Identifier: Apache-2.0
//
// For tests: holds a stream back while `hold` is set. A beat that is offered stays offered. In a
// design without tests `hold` is the constant 0 and the gate vanishes.
module stream_gate (
    input  logic clk,
    input  logic rst,
    input  logic hold,
    input  logic in_valid,
    output logic in_ready,
    output logic out_valid,
    input  logic out_ready
);
  logic offered;
  logic open;
  assign open = offered || !hold;
  assign out_valid = in_valid && open;
  assign in_ready = out_ready && open;
  always_ff @(posedge clk) begin
    if (rst) offered <= 1'b0;
    else offered <= out_valid && !out_ready;
  end

`ifdef FORMAL
  `include "stream_gate_formal.svh"
`endif
endmodule
