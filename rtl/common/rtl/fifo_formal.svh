// SPDX-License-Identifier: Apache-2.0
// Proved of every FIFO: entries leave in order and unchanged, none is lost, and one that is offered
// stays. With HEAD an entry goes from memory to the head.
  logic f_started = 1'b0;
  (* anyconst *) logic [LOG:0] f_number;  // any entry
  logic f_have;                           // it is in memory
  logic f_shown;                          // it is the head
  logic [W-1:0] f_data;
  wire [LOG:0] f_count = wr - rd;
  wire [LOG:0] f_place = f_number - rd;

  // Whether the writer may write, with SPARE, which is 1 or 2.
  logic f_ready_1, f_ready_2;
  always_ff @(posedge clk) begin
    f_ready_1 <= in_ready && !rst;
    f_ready_2 <= f_ready_1 && !rst;
  end
  always_comb assume (SPARE == 0 || !in_valid || ((SPARE == 1 ? f_ready_1 : f_ready_2) && !rst));
  initial assume (rst);
  always_ff @(posedge clk) begin
    f_started <= 1'b1;
    if (rst) begin
      f_have <= 1'b0;
      f_shown <= 1'b0;
    end else begin
      if (writes && wr == f_number) begin
        f_have <= 1'b1;
        f_data <= in_data;
      end else if (reads && rd == f_number) begin
        f_have <= 1'b0;
      end
      if (reads) f_shown <= HEAD && rd == f_number;
      else if (out_ready) f_shown <= 1'b0;
    end
    if (f_started && !rst) begin
      assert (f_count <= (LOG + 1)'(2 ** LOG));
      assert (full || f_count != (LOG + 1)'(2 ** LOG));
      if (writes) assert (f_count != (LOG + 1)'(2 ** LOG));
      assert (f_have == (f_place < f_count));
      if (f_have) assert (mem[f_number[LOG-1:0]] == f_data);
      if (HEAD) begin
        if (f_shown) assert (out_valid && rd == f_number + 1'b1 && out_data == f_data);
        if (out_valid && rd == f_number + 1'b1) assert (f_shown);
        if (reads && rd == f_number) assert (f_have);
      end else if (out_valid && rd == f_number) begin
        assert (f_have && out_data == f_data);
      end
      if (!$past(rst) && $past(out_valid && !out_ready)) assert (out_valid && out_data == $past(out_data));
    end
  end
