// SPDX-License-Identifier: Apache-2.0
// Proved of every packet FIFO: the skid buffer, which has a proof of its own, gets exactly the
// entries that were committed, in order and unchanged; none is offered before its commit or after
// an abort; one that is offered stays.
  logic f_started = 1'b0;
  (* anyconst *) logic [LOG:0] f_number;
  logic f_have;       // entry f_number is in memory, committed or not
  logic f_shown;      // memory has answered it
  logic f_next;       // with REG: the answer is in the register
  logic [W-1:0] f_data;
  wire [LOG:0] f_count = wr - rd;
  wire [LOG:0] f_committed = done - rd;
  wire [LOG:0] f_place = f_number - rd;

  initial assume (rst);
  always_ff @(posedge clk) begin
    f_started <= 1'b1;
    if (rst) begin
      f_have <= 1'b0;
      f_shown <= 1'b0;
      f_next <= 1'b0;
    end else begin
      if (abort && f_have && f_place >= f_committed) f_have <= 1'b0;
      else if (!abort && in_valid && in_ready && wr == f_number) begin
        f_have <= 1'b1;
        f_data <= in_data;
      end else if (fetch && rd == f_number) begin
        f_have <= 1'b0;
      end
      if (fetch) f_shown <= rd == f_number;
      else if (head_ready) f_shown <= 1'b0;
      if (head_ready) f_next <= REG && f_shown;
    end
    if (f_started && !rst) begin
      assert (f_count <= (LOG + 1)'(2 ** LOG));
      assert (full || f_count != (LOG + 1)'(2 ** LOG));
      assert (f_committed <= f_count);
      assert (f_have == (f_place < f_count));
      if (f_have) assert (mem[f_number[LOG-1:0]] == f_data);
      if (f_shown) assert (head_valid && rd == f_number + 1'b1 && head == f_data);
      if (f_next) assert (next_valid && next == f_data && (rd == f_number + 1'b1 || rd == f_number + 2'd2));
      if (f_next && rd == f_number + 2'd2) assert (head_valid && !f_shown);
      if (f_next) assert (!f_shown);
      if (fetch) assert (f_committed != '0);
      if (!$past(rst) && $past(head_valid && !head_ready)) assert (head_valid && head == $past(head));
      if (!$past(rst) && $past(next_valid && !next_ready)) assert (next_valid && next == $past(next));
    end
  end
