// SPDX-License-Identifier: Apache-2.0
//
// Registers both directions of a stream at full throughput.
module skid_buffer #(
    parameter int W = 8
) (
    input  logic         clk,
    input  logic         rst,
    input  logic         in_valid,
    output logic         in_ready,
    input  logic [W-1:0] in_data,
    output logic         out_valid,
    input  logic         out_ready,
    output logic [W-1:0] out_data
);
  logic spare_valid;
  logic [W-1:0] spare;

  assign in_ready = !spare_valid;

  always_ff @(posedge clk) begin
    if (rst) begin
      out_valid <= 1'b0;
      spare_valid <= 1'b0;
    end else if (!out_valid || out_ready) begin
      out_valid <= spare_valid || in_valid;
      spare_valid <= 1'b0;
    end else if (in_valid && in_ready) begin
      spare_valid <= 1'b1;
    end
  end
  always_ff @(posedge clk) begin
    if (!out_valid || out_ready) out_data <= spare_valid ? spare : in_data;
    if (in_ready) spare <= in_data;
  end

`ifdef FORMAL
  `include "skid_buffer_formal.svh"
`endif
endmodule
