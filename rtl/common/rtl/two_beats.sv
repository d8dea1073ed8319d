// SPDX-License-Identifier: Apache-2.0
//
// The two beats of a stream that come next: a consumer that moves bytes by a part of a beat sees what
// it needs. It takes the first one, or both, and may wait for the second one. What it takes is known late: `in_ready` is a
// register, and one beat more has a place.
module two_beats #(
    parameter int W = 8
) (
    input  logic         clk,
    input  logic         rst,
    input  logic         in_valid,
    output logic         in_ready,
    input  logic [W-1:0] in_data,
    output logic         first_valid,
    output logic [W-1:0] first,
    output logic         second_valid,  // only with first_valid
    output logic [W-1:0] second,
    input  logic         take,       // the first one, which is valid
    input  logic         take_both   // with take
);
  logic waits;  // a beat behind the first one, or on its way there
  logic spare_valid;  // only with both
  logic [W-1:0] spare;
  logic moves, shifts;
  assign moves = !first_valid || take;
  assign shifts = !waits || moves;
  assign in_ready = !spare_valid;
  assign second_valid = first_valid && waits;

  always_ff @(posedge clk) begin
    if (rst) begin
      first_valid <= 1'b0;
      waits <= 1'b0;
      spare_valid <= 1'b0;
    end else begin
      if (moves) first_valid <= waits && !take_both;
      if (shifts) begin
        waits <= spare_valid || in_valid;
        spare_valid <= 1'b0;
      end else if (in_valid) begin
        spare_valid <= 1'b1;
      end
    end
  end
  always_ff @(posedge clk) begin
    if (moves) first <= second;
    if (shifts) second <= spare_valid ? spare : in_data;
    if (in_ready) spare <= in_data;
  end

`ifdef FORMAL
  `include "two_beats_formal.svh"
`endif
endmodule
