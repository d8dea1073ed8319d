// SPDX-License-Identifier: Apache-2.0
//
// Two streams of frames into one, frame by frame, alternately where both have one. What is offered
// stays offered.
module frame_mux #(
    parameter int W = 68
) (
    input  logic         clk,
    input  logic         rst,
    input  logic         a_valid,
    output logic         a_ready,
    input  logic [W-1:0] a_data,
    input  logic         a_last,
    input  logic         b_valid,
    output logic         b_ready,
    input  logic [W-1:0] b_data,
    input  logic         b_last,
    output logic         out_valid,
    input  logic         out_ready,
    output logic [W-1:0] out_data,
    output logic         out_last
);
  logic begun, chosen, choice;  // 1: b
  assign choice = begun ? chosen : b_valid && (!a_valid || !chosen);
  assign out_valid = choice ? b_valid : a_valid;
  assign out_data = choice ? b_data : a_data;
  assign out_last = choice ? b_last : a_last;
  assign a_ready = out_ready && !choice;
  assign b_ready = out_ready && choice;

  always_ff @(posedge clk) begin
    if (rst) begin
      begun <= 1'b0;
      chosen <= 1'b0;
    end else if (out_valid) begin
      begun <= !(out_ready && out_last);
      chosen <= choice;
    end
  end

`ifdef FORMAL
  `include "frame_mux_formal.svh"
`endif
endmodule
